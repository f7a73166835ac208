/** Recognises model files, and derives the model's name. */
import { expect, test } from "bun:test";
import { nameOf, planOf } from "../../src/page/app/models/model-files.ts";
import { en } from "../../src/page/app/words/en.ts";

const words = en.modelFiles;

/** The beginning of a GGUF; its first key is its architecture. */
function file(name: string, architecture?: string): File {
  const head = Buffer.alloc(24);
  head.write("GGUF");
  const key = "general.architecture";
  const length = (count: number): Buffer<ArrayBuffer> => {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32LE(count);
    return bytes;
  };
  const parts = [head, length(key.length), Buffer.from(key), Buffer.from([8, 0, 0, 0])];
  const value = architecture ?? "";
  return new File([Buffer.concat(architecture ? [...parts, length(value.length), Buffer.from(value)] : [head])], name);
}

const problem = (files: readonly File[]): Promise<string> =>
  planOf(files, words).then(
    () => "none",
    (error: Error) => error.message,
  );

test.each([
  ["Qwen3-4B-Instruct-Q4_K_M.gguf", "qwen3-4b-instruct:q4_k_m"],
  ["llama.GGUF", "llama"],
  ["Mein Modell (v2)!.gguf", "mein-modell-v2"],
  ["../../etc/passwd.gguf", "etc-passwd"],
  ["モデル.gguf", "model"],
  ["gemma-3.IQ3_XS.gguf", "gemma-3:iq3_xs"],
  ["q8_0.gguf", "q8_0"],
  [`${"a".repeat(300)}.gguf`, "a".repeat(80)],
])("%s gets the name %s", (name, expected) => expect(nameOf(name)).toBe(expected));

test("parts are in order, and the projector is last, whatever its name", async () => {
  const parts = [2, 1].map((i) => file(`Big-F16-0000${i}-of-00002.gguf`, "llama"));
  const eye = file("eye.gguf", "clip");
  const plan = await planOf([eye, ...parts], words);
  expect(plan.files.map(({ name }) => name)).toEqual([
    "Big-F16-00001-of-00002.gguf",
    "Big-F16-00002-of-00002.gguf",
    "eye.gguf",
  ]);
  expect([plan.name, plan.projector]).toEqual(["big:f16", eye]);
});

test.each([
  [[new File([], "a.gguf")], "a.gguf is empty."],
  [[new File(["<html>not found"], "a.gguf")], words.notGguf("a.gguf")],
  [[new File(["GG"], "a.gguf")], words.notGguf("a.gguf")],
  [[file("mmproj-a.gguf")], words.onlyImages],
  [[file("a.gguf", "clip")], words.onlyImages],
  [[file("a.gguf"), file("b.gguf")], words.several],
  [[file("a.gguf"), file("mmproj-1.gguf"), file("mmproj-2.gguf")], words.several],
  [[file("a-00002-of-00003.gguf")], words.missing(2, "a-00001-of-00003.gguf, a-00003-of-00003.gguf")],
  [[file("a-00001-of-00002.gguf"), file("b-00002-of-00002.gguf")], words.several],
  [
    [file("a-00001-of-99999.gguf")],
    words.missing(
      1023,
      "a-00002-of-99999.gguf, a-00003-of-99999.gguf, a-00004-of-99999.gguf, a-00005-of-99999.gguf, …",
    ),
  ],
])("files that are not a model are refused: %#", async (files, expected) =>
  expect(await problem(files)).toBe(expected),
);

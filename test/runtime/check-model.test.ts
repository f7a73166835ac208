/** The check of a model's headers before it is stored: whether it can run here. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeGguf, type WriteModel, type WriteValue } from "../../src/engine/formats/files/write.ts";
import { checkModel } from "../../src/runtime/check-model.ts";
import { makeLibrary } from "../../src/library/create/library.ts";
import { encoders, makeEncoder } from "../engine/architectures/encoders.ts";
import { makeModel, modelNames } from "../engine/architectures/models.ts";
import { fields, silent, statusesOf } from "../library/creating.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-check-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function put({ metadata, tensors }: WriteModel, keys: Record<string, WriteValue> = {}): Promise<string> {
  const path = join(folder, `${crypto.randomUUID()}.gguf`);
  await writeGguf(path, { metadata: { ...metadata, ...keys }, tensors });
  return path;
}

const check = async (path: string): Promise<string> => {
  try {
    await checkModel({ label: "m.gguf", path });
    return "no error";
  } catch (error) {
    return (error as Error).message;
  }
};

/** A model that claims to be of another architecture. */
function renamed({ metadata, tensors }: WriteModel, to: string): WriteModel {
  const from = `${String(metadata["general.architecture"])}.`;
  const keys = Object.entries(metadata).map(
    ([key, value]) => [key.startsWith(from) ? `${to}.${key.slice(from.length)}` : key, value] as const,
  );
  return { metadata: { ...Object.fromEntries(keys), "general.architecture": to }, tensors };
}

test("every architecture that is made in code and every encoder pass the check", async () => {
  const wrong: string[] = [];
  const models = [
    ...modelNames.map((name) => [name, makeModel(name)] as const),
    ...Object.entries(encoders).map(([name, spec]) => [name, makeEncoder(spec)] as const),
  ];
  expect(models.length).toBeGreaterThan(30);
  for (const [name, model] of models) {
    const path = await put(model);
    const said = await check(path);
    rmSync(path);
    if (said !== "no error") wrong.push(`${name}: ${said}`);
  }
  expect(wrong).toEqual([]);
}, 30_000);

describe("an unsupported variant is refused with its load's error, and leaves no blob", () => {
  const experts = { "refact.expert_count": { u32: 2 }, "refact.expert_used_count": { u32: 1 } };
  test.each([
    ["experts", renamed(makeModel("llama"), "refact"), experts, "'refact.expert_count': expected none, got 2"],
    [
      "a scaling",
      makeModel("llama"),
      { "llama.rope.scaling.type": "dynamic" },
      "'llama.rope.scaling.type': expected one of none, linear, yarn, longrope, got 'dynamic'",
    ],
    [
      "a tokenizer",
      makeModel("llama"),
      { "tokenizer.ggml.model": "new" },
      "metadata 'tokenizer.ggml.model': expected one of gpt2, gemma4, llama, bert, t5, plamo2, rwkv, none, no_vocab, test; got 'new'",
    ],
  ])("%s", async (_, model, keys, words) => {
    const path = await put(model, keys);
    expect(await check(path)).toBe(`m.gguf: ${words}`);
    const root = join(folder, crypto.randomUUID());
    const library = makeLibrary({ root, importDirs: [], noPrune: false, log: silent, runs: () => true, checkModel });
    const create = statusesOf(library.create(fields({ sources: [{ label: "m.gguf", path }] })));
    await expect(create).rejects.toMatchObject({ code: "unsupported", message: `m.gguf: ${words}` });
    expect(readdirSync(root, { recursive: true }).filter((name) => String(name).includes("sha256"))).toEqual([]);
  });
});

test("an unknown pre-tokenizer is refused, and a known one passes", async () => {
  const withPre = (pre: string) =>
    put(makeModel("llama"), { "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre });
  expect(await check(await withPre("llama-bpe"))).toBe("no error");
  expect(await check(await withPre("of-tomorrow"))).toStartWith(
    "m.gguf: metadata 'tokenizer.ggml.pre': expected a pre",
  );
});

test("damaged, incomplete and missing files pass the check, and fail at their load", async () => {
  const path = await put({ metadata: { "general.architecture": "llama" }, tensors: [] });
  expect(await check(path)).toBe("no error");
  expect(await check(await put({ metadata: { "general.architecture": "nobody" }, tensors: [] }))).toBe("no error");
  expect(await check(join(folder, "nowhere"))).toBe("no error");
  writeFileSync(path, "GGUF");
  expect(await check(path)).toBe("no error");
});

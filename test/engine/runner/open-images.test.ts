/** The image encoder of a model that attends to images by cross attention, beside its text. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import type { LoadedEngine } from "../../../src/engine/batching/load.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { projectorGguf } from "../../../src/engine/formats/gguf/repair/index.ts";
import { openImages } from "../../../src/engine/runner/open-images.ts";
import { decodeImage } from "../../../src/engine/vision/index.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { byteTokenizer, encodeSafetensors, writeFolder } from "../../library/convert/hugging-face.ts";
import { readOriginals, tensorsOf } from "../../library/convert/originals.ts";
import { makeModel } from "../architectures/models.ts";
import { picture } from "../vision/vision-model.ts";

let folder = "";
let path = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hearth-open-images-"));
  path = join(folder, "model.gguf");
  const original = (await readOriginals())["Mllama-images"]!;
  const source = await writeFolder(join(folder, "source"), {
    "config.json": original.config,
    "tokenizer.json": byteTokenizer(makeModel("llama").metadata),
    "model.safetensors": encodeSafetensors(tensorsOf(original)),
  });
  await convertModel({ folder: source, to: path });
});
afterAll(() => rm(folder, { recursive: true }));

const never = new AbortController().signal;

/** @param token the ids of the image's token; `rows`: the most that the text model takes */
async function open({ token = [320], rows }: { token?: number[]; rows?: number } = {}) {
  const gguf = openGguf(path);
  const whole = loadProgram(gguf);
  const program = rows === undefined ? whole : { ...whole, memory: { ...whole.memory!, rows } };
  const model = {
    program,
    projector: { gguf: projectorGguf(gguf)!, isOwn: true },
    tokenizer: { encode: () => Int32Array.from(token) },
    info: { backend: "cpu", bytes: { weights: 0, kv: 0, scratch: 0 }, vramBytes: 0 },
  } as unknown as LoadedEngine;
  const opened = await openImages({
    backend: cpuBackend,
    model,
    decodeImage: async (bytes) => decodeImage(bytes),
    decodeAudio: undefined,
    onImage: () => {},
    pause: async () => {},
    message: { threads: 1 } as never,
    signal: never,
  });
  return opened!;
}

test("an image for cross attention is one row with a token, and its tiles are the memory", async () => {
  const { images, info } = await open();
  expect(info).toMatchObject({ media: ["image"] });
  expect(images!.isSingle).toBe(true);
  const bytes = picture(1);
  await images!.read([bytes]);
  expect(images!.layout(bytes)).toEqual([{ kind: "rows", rows: 1 }]);
  const [encoded] = await images!.encode([bytes], never);
  const [media] = encoded!;
  expect(media).toMatchObject({ rows: 1, token: 320, vectors: new Float32Array(), isTwoWay: false });
  expect(media!.memory!.length % (17 * 64)).toBe(0);
  await images!.close();
});

test("an image with more rows than the text model accepts is refused", async () => {
  const { images } = await open({ rows: 16 });
  const bytes = picture(1);
  await images!.read([bytes]);
  const expected = expect.stringMatching(/'mllama' of .* takes at most 16 rows, got an image of \d+$/);
  await expect(images!.encode([bytes], never)).rejects.toMatchObject({ code: "bad_file", message: expected });
  await images!.close();
});

test.each([[[]], [[5, 6]], [[400]]])(
  "a tokenizer with %j in place of the image's token leaves text only",
  async (token) => {
    const { images, info } = await open({ token });
    expect(images).toBeUndefined();
    expect(info.visionMissing).toContain("expected a token '<|image|>' with an embedding, got none");
  },
);

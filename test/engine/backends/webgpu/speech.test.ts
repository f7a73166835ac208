/** Whisper on a GPU: encoder, memory and decoder have the CPU's numbers, and write the same tokens. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { simdBackend } from "../../../../src/engine/backends/host/simd.ts";
import { openAudioEncoder } from "../../../../src/engine/hearing/index.ts";
import { FRAMES } from "../../../../src/engine/hearing/mel.ts";
import type { Backend } from "../../../../src/engine/program/backend.ts";
import { convertModel } from "../../../../src/library/convert/convert.ts";
import { openWhisper, writeWhisper } from "../../runner/speech-model.ts";
import { nmse } from "../compare.ts";
import { sharedWebGpu } from "./shared.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-gpu-speech-"));
const path = join(folder, "whisper.gguf");
let gpu: Backend;
beforeAll(async () => {
  const { backend } = await sharedWebGpu();
  const load: Backend["load"] = (program, { ctxLen, slots, precise, images }) =>
    backend.load(program, { ctxLen, slots, precise, images, threads: 1, cacheDir: undefined }); // without functions
  gpu = { name: "webgpu", load };
  await convertModel({ folder: await writeWhisper(join(folder, "source")), to: path });
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Frames of a spectrogram: a whole window takes a software GPU 20 seconds, most of it for attention. */
const TIME = process.env["HEARTH_TEST_CASES"] === "all" ? FRAMES : 400;

/** The likeliest tokens about a recording, and the logits after them. */
async function transcribe(backend: Backend) {
  const { model, speech } = await openWhisper(path, { backend });
  const own = { backend, text: undefined, threads: 1, simdLevel: undefined, signal: new AbortController().signal };
  const encoder = await openAudioEncoder(model.projector!.gguf, own);
  const values = Float32Array.from({ length: 80 * TIME }, (_, i) => Math.sin(i * i));
  const rows = await encoder.encodePiece({ values, batches: 1, time: TIME, bins: 1, channels: 80 }, async () => {});
  let start = 0;
  const extend = async (tokens: number[]): Promise<Float32Array> => {
    const memory = { id: "recording", rows };
    const run = { slot: 0, start, tokens: Int32Array.from(tokens), memory, logits: "last" as const };
    start += tokens.length;
    return (await model.decoder!.session.run([run])).slice();
  };
  let logits = await extend([1, 5]);
  const tokens: number[] = [];
  while (tokens.length < 8) {
    tokens.push(logits.indexOf(Math.max(...logits)));
    logits = await extend(tokens.slice(-1));
  }
  encoder.close();
  speech.close!();
  await model.engine.close();
  return { logits, tokens };
}

test("encoder and decoder give the CPU's tokens and logits for a recording", async () => {
  const [expected, got] = [await transcribe(simdBackend), await transcribe(gpu)];
  expect(got.tokens).toEqual(expected.tokens);
  expect(new Set(got.tokens).size).toBeGreaterThan(1);
  expect(nmse(got.logits, expected.logits)).toBeLessThan(1e-9);
}, 180_000);

/**
 * Llama 3.2 Vision over an image's rows. The last tokens' logits were computed by transformers 5.24
 * (`MllamaForCausalLM` in float64, `cross_attention_states` without a mask) with the weights of the model made in code.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import type { Rows } from "../../../src/engine/program/backend.ts";
import { withoutMemory } from "../../../src/engine/program/memory.ts";
import { memoryOf } from "../../conformance/memory-cases.ts";
import { nmse } from "../backends/compare.ts";
import { makeModel, TOKENS } from "./models.ts";

const image = memoryOf("image", 5, 64);
const options = { ctxLen: 64, slots: 2, precise: true, threads: 1, cacheDir: undefined };

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-mllama-"))));
afterAll(() => rm(folder, { recursive: true }));

async function openModel(change: Record<string, { u32: number }> = {}) {
  const { metadata, tensors } = makeModel("mllama");
  const path = join(folder, `${Object.keys(change).length}.gguf`);
  await writeGguf(path, { metadata: { ...metadata, ...change }, tensors });
  return openGguf(path);
}

test.each([
  ["cpu", cpuBackend],
  ["simd", simdBackend],
])("an image changes the logits as in transformers: %s", async (_, backend) => {
  const gguf = await openModel();
  const session = await backend.load(loadProgram(gguf), options);
  const expected = new Float32Array(await Bun.file(join(import.meta.dir, "logits/mllama-image.f32")).arrayBuffer());
  const entry = { slot: 1, start: 0, tokens: TOKENS, logits: "all" } as const;
  const last = (logits: Float32Array): Float32Array => logits.slice(-expected.length);
  const seeing = last(await session.run([{ ...entry, memory: image }]));
  const withoutImage = last(await session.run([{ ...entry, slot: 0 }]));
  expect(nmse(seeing, expected)).toBeLessThan(1e-9);
  expect(nmse(withoutImage, expected)).toBeGreaterThan(0.01);
  session.close();
  gguf.close();
});

test("an image changes the logits of the tokens behind it only, token by token as at once", async () => {
  const gguf = await openModel();
  const program = loadProgram(gguf);
  const rowsOf = (start: number, end: number): Rows => {
    return { slot: 0, start, tokens: TOKENS.slice(start, end), logits: "all" };
  };
  const [whole, plain] = [
    await simdBackend.load(program, options),
    await simdBackend.load(withoutMemory(program), options),
  ];
  const before = (await whole.run([rowsOf(0, 6)])).slice();
  expect(before).toEqual((await plain.run([rowsOf(0, 6)])).slice());
  const together = (await whole.run([{ ...rowsOf(6, 12), memory: image }])).slice();
  const single: number[] = [];
  for (let at = 6; at < 12; at++) single.push(...(await whole.run([{ ...rowsOf(at, at + 1), memory: image }])));
  expect(nmse(Float32Array.from(single), together)).toBeLessThan(1e-9);
  expect(nmse((await plain.run([rowsOf(6, 12)])).slice(), together)).toBeGreaterThan(0.01);
  for (const each of [whole, plain]) each.close();
  gguf.close();
});

test("more tiles than any model has are refused before allocation", async () => {
  const gguf = await openModel({ "mllama.vision.max_num_tiles": { u32: 65 } });
  expect(() => loadProgram(gguf)).toThrow("'mllama.vision.max_num_tiles'");
  gguf.close();
});

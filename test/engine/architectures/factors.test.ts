/** Factors of whole matrices, as NVFP4 files have them (`NAME.scale`): in every family, and where none may be. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteTensor } from "../../../src/engine/formats/files/write.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import type { Program } from "../../../src/engine/program/backend.ts";
import { weightsOf } from "../../../src/engine/program/describe.ts";
import { nmse } from "../backends/compare.ts";
import { CTX_LEN, makeModel, TOKENS } from "./models.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-factors-"))));
afterAll(() => rm(folder, { recursive: true }));

async function withFile<T>(name: string, tensors: readonly WriteTensor[], use: (program: Program) => T): Promise<T> {
  const path = join(folder, "model.gguf");
  await writeGguf(path, { ...makeModel(name), tensors });
  const gguf = openGguf(path);
  try {
    return await use(loadProgram(gguf));
  } finally {
    gguf.close();
  }
}

async function logitsOf(program: Program): Promise<Float32Array> {
  const options = { ctxLen: CTX_LEN, slots: 1, precise: true, threads: 1, cacheDir: undefined };
  const session = await cpuBackend.load(program, options);
  const logits = (await session.run([{ slot: 0, start: 0, tokens: TOKENS.subarray(0, 6), logits: "all" }])).slice();
  session.close();
  return logits;
}

/** Names of the matrices that may have a factor. */
const matricesOf = ({ steps }: Program): ReadonlySet<string> =>
  new Set(steps.flatMap((step) => weightsOf(step, "matrix", "experts", "embedding").map((weight) => weight.name)));

const floats = (values: Float32Array): Uint8Array => new Uint8Array(values.buffer);

/** One for each expert, or one. */
const factorOf = ({ name, shape }: WriteTensor): WriteTensor => {
  const count = name.includes("_exps") ? shape.at(-1)! : 1;
  const values = new Float32Array(count).fill(1.5);
  return { name: name.replace(/weight$/, "scale"), shape: [count], quant: quants.f32, data: floats(values) };
};

const FAMILIES = `llama-biases qwen2 gemma3 phi3 granitemoe starcoder2 kimi-linear deepseek2 gpt-oss deepseek32 hy_v4
  lfm2 rwkv7 gemma4`.split(/\s+/);
test.each(FAMILIES)("%s: the factor of every matrix multiplies its weights, not its bias", async (name) => {
  const { tensors } = makeModel(name);
  const matrices = await withFile(name, tensors, matricesOf);
  const multiplied = tensors.map((tensor) => {
    if (!matrices.has(tensor.name)) return tensor;
    const values = new Float32Array((tensor.data as Uint8Array).slice().buffer); // makeModel made it
    return { ...tensor, data: floats(values.map((value) => 1.5 * value)) };
  });
  const scaled = tensors.filter((tensor) => matrices.has(tensor.name));
  expect(scaled.length).toBeGreaterThan(5);
  const expected = await withFile(name, multiplied, logitsOf);
  const got = await withFile(name, [...tensors, ...scaled.map(factorOf)], logitsOf);
  expect(nmse(got, expected)).toBeLessThan(1e-9);
});

test("a factor beside a weight that is not a matrix is refused by name, and so is one of another shape", async () => {
  const { tensors } = makeModel("llama");
  const load = (factor: WriteTensor) => withFile("llama", [...tensors, factor], matricesOf);
  const named = (name: string): WriteTensor => tensors.find((tensor) => tensor.name === name)!;
  await expect(load(factorOf(named("blk.1.attn_norm.weight")))).rejects.toThrow(
    "tensor 'blk.1.attn_norm.scale': expected none, for 'blk.1.attn_norm.weight' is not a matrix",
  );
  const two = { ...factorOf(named("blk.1.attn_q.weight")), shape: [2], data: floats(new Float32Array(2)) };
  await expect(load(two)).rejects.toThrow("tensor 'blk.1.attn_q.scale': expected (1), got (2)");
});

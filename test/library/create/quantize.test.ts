/** Whole files: written and kept parts, and no leftovers after a failure. */
import { expect, test } from "bun:test";
import { mkdir, mkdtemp, readdir, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteTensor, type WriteValue } from "../../../src/engine/formats/files/write.ts";
import { i32 } from "../../../src/engine/formats/quant/i32.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { quantizeFile, type QuantizeOptions } from "../../../src/library/create/quantize.ts";
import { golden, goldenTest } from "../../golden.ts";

const SEED = 20_261_121;
/** More than two ranges for a thread, the last of them short. */
const ROWS = 2200;

async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "hearth-quantize-"));
  try {
    await use(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const quantize = (from: string, to: string, rest: Partial<QuantizeOptions> = {}) =>
  quantizeFile({ from, to, type: "q4_0", threads: 2, ...rest });

function random(length: number): Float32Array {
  let state = SEED;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.f16round(state / 2 ** 31 - 1);
  });
}

const packed = (name: "f16" | "f32" | "bf16", weights: Float32Array): Uint8Array => {
  const out = new Uint8Array(weights.length * quants[name].blockBytes);
  quants[name].quantize!(weights, out);
  return out;
};

const METADATA: Readonly<Record<string, WriteValue>> = {
  "general.architecture": "llama",
  "general.file_type": { u32: 1 },
  "general.alignment": { u32: 64 },
  "llama.block_count": { u32: 1 },
  "llama.attention.layer_norm_rms_epsilon": { f32: 1e-5 },
  "odd.u8": { u8: 200 },
  "odd.i64": { i64: -5n },
  "odd.u64": { u64: 2n ** 63n },
  "odd.f64": { f64: 0.1 },
  "odd.flag": true,
  "odd.nested": [["a"], []],
  "odd.empty": [],
  "odd.shorts": new Int16Array([-1, 2]),
  "tokenizer.ggml.tokens": ["a", "é", ""],
};

const EMBEDDING = random(256 * ROWS);
const NORM = random(256);

function tensors(): WriteTensor[] {
  return [
    { name: "token_embd.weight", shape: [256, ROWS], quant: quants.f16, data: packed("f16", EMBEDDING) },
    { name: "output_norm.weight", shape: [256], quant: quants.f32, data: packed("f32", NORM) },
    { name: "output.weight", shape: [256, 3], quant: quants.bf16, data: packed("bf16", EMBEDDING.slice(0, 768)) },
  ];
}

async function writeSource(folder: string, extra: readonly WriteTensor[] = []): Promise<string> {
  const path = join(folder, "in.gguf");
  await writeGguf(path, { metadata: METADATA, tensors: [...tensors(), ...extra] });
  return path;
}

test("the file has the same tensors in the same order, and each whole tensor has one type", () =>
  withFolder(async (folder) => {
    const to = join(folder, "out.gguf");
    const { type, tensorTypes } = await quantize(await writeSource(folder), to, { type: "Q5_k_M" });
    expect(type).toBe("Q5_K_M");
    using file = closing(openGguf(to));
    const got = [...file.tensors.values()].map(({ name, shape, quant }) => [name, shape, quant.name]);
    expect(got).toEqual([
      ["token_embd.weight", [256, ROWS], "q5_K"],
      ["output_norm.weight", [256], "f32"],
      ["output.weight", [256, 3], "q6_K"],
    ]);
    expect([...tensorTypes]).toContainEqual(["output.weight", "q6_K"]);
    const expected = new Uint8Array(ROWS * quants.q5_K.blockBytes);
    quants.q5_K.quantize!(EMBEDDING, expected);
    expect(Buffer.compare(file.read("token_embd.weight"), expected)).toBe(0);
    expect(file.read("output_norm.weight")).toEqual(packed("f32", NORM));
  }));

test("metadata keeps its values and number types, except the facts about the file itself", () =>
  withFolder(async (folder) => {
    const from = await writeSource(folder);
    const to = join(folder, "out.gguf");
    const expected = join(folder, "expected.gguf");
    await quantize(from, to);
    const { "general.alignment": _, ...kept } = METADATA;
    const own = { "general.file_type": { u32: 2 }, "general.quantization_version": { u32: 2 } };
    await writeGguf(expected, { metadata: { ...kept, ...own }, tensors: [] });
    const header = (await Bun.file(expected).bytes()).subarray(16); // after the tensor count
    const keyCount = header.length - 32; // less the padding
    expect((await Bun.file(to).bytes()).subarray(16, 16 + keyCount)).toEqual(header.subarray(0, keyCount));
  }));

test("progress counts the source's bytes up to the total, once per range", () =>
  withFolder(async (folder) => {
    const seen: [number, number][] = [];
    const onProgress = (done: { completed: number; total: number }) => seen.push([done.completed, done.total]);
    await quantize(await writeSource(folder), join(folder, "out.gguf"), { onProgress });
    const total = 2 * 256 * ROWS + 4 * 256 + 2 * 768;
    const first = 2 * 2 ** 18;
    const embedding = 2 * 256 * ROWS;
    expect(seen).toEqual([first, 2 * first, embedding, embedding + 1024, total].map((completed) => [completed, total]));
  }));

test("a split model becomes one file, also if its first part has no tensors", () =>
  withFolder(async (folder) => {
    const split = (no: number) => ({
      "split.no": { u16: no },
      "split.count": { u16: 2 },
      "split.tensors.count": { i32: 3 },
    });
    await quantize(await writeSource(folder), join(folder, "whole.gguf"));
    const whole = await Bun.file(join(folder, "whole.gguf")).bytes();
    for (const inFirst of [0, 1]) {
      const from = join(folder, "in-00001-of-00002.gguf");
      await writeGguf(from, { metadata: { ...METADATA, ...split(0) }, tensors: tensors().slice(0, inFirst) });
      const second = join(folder, "in-00002-of-00002.gguf");
      await writeGguf(second, { metadata: split(1), tensors: tensors().slice(inFirst) });
      await quantize(from, join(folder, "joined.gguf"));
      expect(Buffer.compare(await Bun.file(join(folder, "joined.gguf")).bytes(), whole)).toBe(0);
    }
  }));

/** Runs something that must fail, and checks that the target is unchanged and no other file appeared. */
async function expectUntouched(folder: string, run: (to: string) => Promise<unknown>): Promise<unknown> {
  const to = join(folder, "old", "out.gguf");
  await mkdir(join(folder, "old"), { recursive: true });
  await writeFile(to, "old");
  const error = await run(to).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(await Bun.file(to).text()).toBe("old");
  expect(await readdir(join(folder, "old"))).toEqual(["out.gguf"]);
  return error;
}

test("cancelling ends the work, before and between ranges", () =>
  withFolder(async (folder) => {
    const from = await writeSource(folder);
    const cancelled = { code: "cancelled" };
    const aborted = AbortSignal.abort();
    expect(await expectUntouched(folder, (to) => quantize(from, to, { signal: aborted }))).toMatchObject(cancelled);
    const controller = new AbortController();
    const options = { signal: controller.signal, onProgress: () => controller.abort() };
    expect(await expectUntouched(folder, (to) => quantize(from, to, options))).toMatchObject(cancelled);
  }));

test("weights that are not finite are refused with the tensor's name", () =>
  withFolder(async (folder) => {
    for (const [bad, found] of [
      [NaN, "NaN"],
      [-Infinity, "-Infinity"],
    ] as const) {
      const data = packed("f32", new Float32Array(512).fill(bad, 511));
      const from = await writeSource(folder, [{ name: "a.weight", shape: [256, 2], quant: quants.f32, data }]);
      expect(await expectUntouched(folder, (to) => quantize(from, to))).toMatchObject({
        code: "bad_file",
        message: `${from}: tensor 'a.weight': expected finite weights, got ${found}`,
      });
    }
  }));

test("a missing, damaged or quantized source, or one that is also the target, is refused", () =>
  withFolder(async (folder) => {
    const from = await writeSource(folder);
    const error = (path: string, options = {}) => expectUntouched(folder, (to) => quantize(path, to, options));
    expect(await error(join(folder, "none"))).toMatchObject({ code: "not_found" });
    expect(await error(from, { type: "q4_9" })).toMatchObject({ code: "bad_request" });
    const quantized = join(folder, "quantized.gguf");
    await quantize(from, quantized);
    expect(await error(quantized)).toMatchObject({
      code: "bad_request",
      message: "quantization is only supported for F16, BF16 and F32 models",
    });
    const same = quantize(from, join(folder, ".", "in.gguf"));
    expect(await same.catch((reason: unknown) => reason)).toMatchObject({ code: "bad_request" });
    await expect(quantize(from, folder)).rejects.toThrow(`${folder}: expected a file to write, got a folder`);
    await truncate(from, 100_000);
    expect(await error(from)).toMatchObject({ code: "bad_file" });
  }));

test("a source that is truncated during the work is an error", () =>
  withFolder(async (folder) => {
    const from = await writeSource(folder);
    let shorter: Promise<void> | undefined;
    const run = expectUntouched(folder, async (to) => {
      const extra = Array.from({ length: 40 }, (_, i) => ({ ...tensors()[0]!, name: `a${i}.weight` }));
      await writeGguf(from, { metadata: METADATA, tensors: extra });
      await quantize(from, to, { threads: 1, onProgress: () => (shorter ??= truncate(from, 2 ** 20)) });
    });
    expect(await run).toMatchObject({ code: "bad_file" });
    await shorter;
  }));

goldenTest("a model quantized to F16 has the same weights, and to Q8_0 nearly the same", () =>
  withFolder(async (folder) => {
    const from = golden("archs/llama-dense.gguf");
    using source = closing(openGguf(from));
    for (const [type, bound] of [
      ["f16", 0],
      ["q8_0", 1e-4],
    ] as const) {
      const to = join(folder, `${type}.gguf`);
      await quantize(from, to, { type });
      using file = closing(openGguf(to));
      for (const [name, { quant, byteLength }] of source.tensors) {
        const before = new Float32Array((byteLength / quant.blockBytes) * quant.blockLen);
        const after = new Float32Array(before.length);
        quant.dequantize(source.read(name), before);
        file.tensors.get(name)!.quant.dequantize(file.read(name), after);
        const error = before.reduce((sum, weight, i) => sum + (weight - after[i]!) ** 2, 0);
        const size = before.reduce((sum, weight) => sum + weight ** 2, 0);
        expect(error / size).toBeLessThanOrEqual(bound);
      }
    }
  }),
);

/** Closes at the end of the block. */
function closing<T extends { close(): void }>(resource: T): T & Disposable {
  return Object.assign(resource, { [Symbol.dispose]: () => resource.close() });
}

test("a table of whole numbers is copied for any target type", () =>
  withFolder(async (folder) => {
    const [from, to] = [join(folder, "from.gguf"), join(folder, "to.gguf")];
    const numbers = Int32Array.from({ length: 15 }, (_, i) => i * 1e6 - 7);
    const table = { name: "blk.0.ffn_gate_tid2eid.weight", shape: [3, 5], quant: i32 };
    const weights = { name: "token_embd.weight", shape: [256, 4], quant: quants.f16 };
    await writeGguf(from, {
      metadata: METADATA,
      tensors: [
        { ...table, data: new Uint8Array(numbers.buffer) },
        { ...weights, data: packed("f16", EMBEDDING.subarray(0, 1024)) },
      ],
    });
    await quantize(from, to);
    const made = openGguf(to);
    expect(made.tensors.get(table.name)).toMatchObject({ shape: [3, 5], quant: { name: "i32" }, byteLength: 60 });
    expect(made.read(table.name)).toEqual(new Uint8Array(numbers.buffer));
    expect(made.tensors.get(weights.name)!.quant.name).toBe("q6_K"); // a tied embedding
    made.close();
  }));

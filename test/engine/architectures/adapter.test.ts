/** Models with adapters compared with the same models with merged weights; and every mismatch of an adapter. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel, type WriteTensor } from "../../../src/engine/formats/files/write.ts";
import { f32 } from "../../../src/engine/formats/quant/f32.ts";
import { memoryOf } from "../../conformance/memory-cases.ts";
import { nmse } from "../backends/compare.ts";
import { failure } from "../formats/gguf/fixture.ts";
import { asFloat, makeAdapter, merge, quantizedTo, recordedAdapters, type AdapterOptions } from "./adapters.ts";
import { CTX_LEN, makeModel, RECORDED, TOKENS, VOCAB } from "./models.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-lora-"))));
afterAll(() => rm(folder, { recursive: true }));

async function write(model: WriteModel): Promise<string> {
  const path = join(folder, `${crypto.randomUUID()}.gguf`);
  await writeGguf(path, model);
  return path;
}

/** Logits of every token. */
async function logitsOf(path: string, adapterPaths: readonly string[] = []): Promise<Float32Array> {
  const gguf = openGguf(path);
  const adapters = adapterPaths.map((adapter) => openGguf(adapter));
  try {
    const options = { ctxLen: CTX_LEN, slots: 1, precise: true, threads: 1, cacheDir: undefined };
    const program = loadProgram(gguf, adapters);
    const session = await cpuBackend.load(program, options);
    const memory = program.memory && memoryOf("image", 5, 64);
    return (await session.run([{ slot: 0, start: 0, tokens: TOKENS, memory, logits: "all" }])).slice();
  } finally {
    for (const file of [gguf, ...adapters]) file.close();
  }
}

const readFloats = async (name: string): Promise<Float32Array> =>
  new Float32Array(await Bun.file(join(import.meta.dir, "logits", `${name}.f32`)).arrayBuffer());

const FIRST: AdapterOptions = { rank: 4, alpha: 8, seed: 1 };

describe("a model with an adapter has the logits of the merged model", () => {
  // Models with fused matrices, a tied output, biases, experts and shared experts.
  const names = ["llama", "llama-biases", "llama-tied-factors", "qwen3", "gemma3", "phi3", "llama-experts"];
  for (const name of [...names, "qwen3moe", "granitemoe", "mllama"]) {
    test(name, async () => {
      const model = makeModel(name);
      const adapter = makeAdapter(model, FIRST);
      const path = await write(model);
      const changed = await logitsOf(path, [await write(adapter)]);
      expect(nmse(changed, await logitsOf(await write(merge(model, adapter, FIRST))))).toBeLessThan(1e-10);
      expect(nmse(changed, await logitsOf(path))).toBeGreaterThan(1e-2);
    });
  }

  for (const [name, options] of Object.entries(recordedAdapters)) {
    test(`${name} with an adapter has llama.cpp's logits`, async () => {
      const model = makeModel(name);
      const changed = await logitsOf(await write(model), [await write(makeAdapter(model, options))]);
      const recorded = await readFloats(`${name}+adapter`);
      expect(recorded.length).toBe(RECORDED * VOCAB);
      expect(nmse(changed.slice(-recorded.length), recorded)).toBeLessThan(1e-5);
      expect(nmse(await readFloats(name), recorded)).toBeGreaterThan(1e-2);
    });
  }

  test("with rank 1, and with a rank larger than the matrices", async () => {
    const model = makeModel("llama");
    const path = await write(model);
    for (const options of [
      { rank: 1, alpha: 0.5, seed: 2 },
      { rank: 96, alpha: 16, seed: 3 },
    ]) {
      const adapter = makeAdapter(model, options);
      const changed = await logitsOf(path, [await write(adapter)]);
      expect(nmse(changed, await logitsOf(await write(merge(model, adapter, options))))).toBeLessThan(1e-10);
    }
  });

  test("with a scale of the base's matrix, which does not scale the change", async () => {
    const model = makeModel("llama");
    const byTwo = (tensor: WriteTensor): WriteTensor => {
      if (tensor.name !== "blk.0.attn_q.weight") return tensor;
      const values = new Float32Array((tensor.data as Uint8Array).slice().buffer); // makeModel made it
      return { ...tensor, data: new Uint8Array(values.map((value) => 2 * value).buffer) };
    };
    const two = new Uint8Array(Float32Array.of(2).buffer);
    const factor = { name: "blk.0.attn_q.scale", shape: [1], quant: f32, data: two };
    const adapter = makeAdapter(model, FIRST);
    const changed = await logitsOf(await write({ ...model, tensors: [...model.tensors, factor] }), [
      await write(adapter),
    ]);
    const merged = merge({ ...model, tensors: model.tensors.map(byTwo) }, adapter, FIRST);
    expect(nmse(changed, await logitsOf(await write(merged)))).toBeLessThan(1e-10);
  });

  test("without alpha, which leaves the change unscaled", async () => {
    const model = makeModel("llama");
    const options = { rank: 4, alpha: 0, seed: 4, targets: /attn_q/ };
    const adapter = makeAdapter(model, options);
    const changed = await logitsOf(await write(model), [await write(adapter)]);
    expect(nmse(changed, await logitsOf(await write(merge(model, adapter, options))))).toBeLessThan(1e-10);
  });

  test("with several adapters in any order, which add up", async () => {
    const model = makeModel("phi3");
    const others: AdapterOptions[] = [
      { rank: 2, alpha: 3, seed: 5, targets: /attn/ },
      { rank: 8, alpha: 4, seed: 6, targets: /ffn|token_embd/ },
    ];
    const options = [FIRST, ...others];
    const adapters = options.map((each) => makeAdapter(model, each));
    const merged = adapters.reduce((sum, adapter, i) => merge(sum, adapter, options[i]!), model);
    const expected = await logitsOf(await write(merged));
    const path = await write(model);
    const paths = await Promise.all(adapters.map(write));
    expect(nmse(await logitsOf(path, paths), expected)).toBeLessThan(1e-10);
    expect(nmse(await logitsOf(path, paths.toReversed()), expected)).toBeLessThan(1e-10);
    expect(nmse(await logitsOf(path, paths.slice(1)), expected)).toBeGreaterThan(1e-3);
  });

  test("with float16 adapters over quantized weights", async () => {
    const model = makeModel("llama");
    const quantized = { ...model, tensors: model.tensors.map((tensor) => quantizedTo("q8_0", tensor)) };
    const plain = { ...model, tensors: quantized.tensors.map(asFloat) };
    const adapter = makeAdapter(model, FIRST);
    const halves = { ...adapter, tensors: adapter.tensors.map((tensor) => quantizedTo("f16", tensor)) };
    const merged = merge(plain, { ...halves, tensors: halves.tensors.map(asFloat) }, FIRST);
    const changed = await logitsOf(await write(quantized), [await write(halves)]);
    expect(nmse(changed, await logitsOf(await write(merged)))).toBeLessThan(1e-10);
    expect(quantized.tensors.some(({ quant }) => quant.name === "q8_0")).toBe(true);
  });
});

describe("an adapter that does not fit is refused with the tensor's name:", () => {
  const model = makeModel("llama");
  const whole = makeAdapter(model, { ...FIRST, targets: /blk\.0\.attn_q/ });
  const [a, b] = whole.tensors as [WriteTensor, WriteTensor];
  const withMetadata = (metadata: WriteModel["metadata"]): WriteModel => ({
    ...whole,
    metadata: { ...whole.metadata, ...metadata },
  });
  const withTensors = (...tensors: WriteTensor[]): WriteModel => ({ ...whole, tensors });
  const renamed = (tensor: WriteTensor, name: string): WriteTensor => ({ ...tensor, name });
  const reshaped = (tensor: WriteTensor, shape: readonly number[]): WriteTensor => {
    const count = shape.reduce((x, y) => x * y, 1);
    return { ...tensor, shape, data: new Uint8Array(4 * count) };
  };
  const cases: Readonly<Record<string, readonly [WriteModel, RegExp]>> = {
    "a model": [model, /^bad_file: .*'general.type': expected 'adapter', got 'model'/],
    "another kind": [
      withMetadata({ "adapter.type": "control_vector" }),
      /^unsupported: .*'adapter.type': expected 'lora', got 'control_vector'/,
    ],
    "an activated LoRA": [
      withMetadata({ "adapter.alora.invocation_tokens": Uint32Array.of(1) }),
      /^unsupported: .*alora/,
    ],
    "an adapter for another architecture": [
      withMetadata({ "general.architecture": "qwen2" }),
      /^bad_file: .*'general.architecture': expected 'llama', that of the model, got 'qwen2'/,
    ],
    "an alpha that is no number": [
      withMetadata({ "adapter.lora.alpha": { f32: NaN } }),
      /^bad_file: .*'adapter.lora.alpha': expected a number, got NaN/,
    ],
    "no tensors": [withTensors(), /^bad_file: .*expected tensors, got none/],
    "half a pair": [withTensors(a), /^bad_file: .*adapter of 'blk.0.attn_q.weight': .*got only lora_a/],
    "a tensor of another name": [
      withTensors(a, b, renamed(a, "blk.0.attn_norm.weight")),
      /^unsupported: .*'blk.0.attn_norm.weight': expected a name that ends in .lora_a or .lora_b/,
    ],
    "a missing layer": [
      withTensors(renamed(a, "blk.9.attn_q.weight.lora_a"), renamed(b, "blk.9.attn_q.weight.lora_b")),
      /^bad_file: .*'blk.9.attn_q.weight.lora_a': expected one for a weight of the model/,
    ],
    "a vector": [
      withTensors(renamed(a, "blk.0.attn_norm.weight.lora_a"), renamed(b, "blk.0.attn_norm.weight.lora_b")),
      /^bad_file: .*'blk.0.attn_norm.weight.lora_a': expected one for a matrix/,
    ],
    "a narrower input": [
      withTensors(reshaped(a, [32, 4]), b),
      /^bad_file: .*'blk.0.attn_q.weight.lora_a': expected \(64, 4\), got \(32, 4\)/,
    ],
    "a narrower output": [
      withTensors(a, reshaped(b, [4, 32])),
      /^bad_file: .*'blk.0.attn_q.weight.lora_b': expected \(4, 64\), got \(4, 32\)/,
    ],
    "halves of two ranks": [
      withTensors(a, reshaped(b, [2, 64])),
      /^bad_file: .*'blk.0.attn_q.weight.lora_a': expected \(64, 2\), got \(64, 4\)/,
    ],
    "a rank above 4096": [
      withTensors(reshaped(a, [64, 5000]), reshaped(b, [5000, 64])),
      /^bad_file: .*'blk.0.attn_q.weight.lora_b': expected a rank of 1 to 4096, got 5000/,
    ],
  };
  for (const [what, [adapter, message]] of Object.entries(cases)) {
    test(what, async () => {
      const [base, laid] = [openGguf(await write(model)), openGguf(await write(adapter))];
      const found = failure(() => loadProgram(base, [laid]));
      for (const file of [base, laid]) file.close();
      expect(found).toMatch(message);
    });
  }

  test("a weight that the model does not multiply by", async () => {
    const odd = { ...model, tensors: [...model.tensors, renamed(reshaped(a, [64, 64]), "cls.weight")] };
    const adapter = withTensors(renamed(a, "cls.weight.lora_a"), renamed(b, "cls.weight.lora_b"));
    const [base, laid] = [openGguf(await write(odd)), openGguf(await write(adapter))];
    const found = failure(() => loadProgram(base, [laid]));
    for (const file of [base, laid]) file.close();
    expect(found).toMatch(/^unsupported: .*'cls.weight.lora_a': 'llama' multiplies nothing by that weight/);
  });
});

import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { convertAdapter } from "../../../src/library/convert/adapter.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { encodeSafetensors, pack, unpaired, writeFolder, type PlainTensor } from "./hugging-face.ts";
import { f16 } from "../../../src/engine/formats/quant/f16.ts";

let root = "";
beforeAll(async () => void (root = await mkdtemp(join(tmpdir(), "hearth-adapter-"))));
afterAll(() => rm(root, { recursive: true }));

const BASE = { arch: "llama", nLayers: 2, nHeads: 4, nKvHeads: 2 };
const CONFIG = { peft_type: "LORA", r: 4, lora_alpha: 8, bias: "none", use_dora: false, fan_in_fan_out: false };
const PREFIX = "base_model.model.model.layers";

/** Halves of whole numbers: exact in every type. */
const values = (count: number, seed: number) =>
  Float32Array.from({ length: count }, (_, i) => (((i + 1) * (seed + 3)) % 61) / 2);
const plain = (shape: number[], seed: number): PlainTensor => {
  const count = shape.reduce((product, size) => product * size, 1);
  return { dtype: "F16", shape, data: pack(values(count, seed), f16) };
};

async function convert(tensors: Record<string, PlainTensor>, { config = {}, base = BASE } = {}) {
  const folder = await writeFolder(join(root, crypto.randomUUID()), {
    "lora/adapter_config.json": { ...CONFIG, ...config },
    "lora/adapter_model.safetensors": encodeSafetensors(tensors),
  });
  const to = join(root, `${crypto.randomUUID()}.gguf`);
  await convertAdapter({ folder: { ...folder, label: "folder" }, base, to });
  return openGguf(to);
}

const PAIR = {
  [`${PREFIX}.1.mlp.up_proj.lora_A.weight`]: plain([4, 64], 1),
  [`${PREFIX}.1.mlp.up_proj.lora_B.weight`]: plain([96, 4], 2),
};

test("an adapter has both halves of every weight, as float32, under the names of the base", async () => {
  const gguf = await convert({
    ...PAIR,
    [`${PREFIX}.0.self_attn.v_proj.lora_A.default.weight`]: plain([4, 64], 3),
    [`${PREFIX}.0.self_attn.v_proj.lora_B.default.weight`]: plain([32, 4], 4),
  });
  expect([...gguf.tensors.values()].map(({ name, shape, quant }) => `${name} ${quant.name} ${shape}`).sort()).toEqual([
    "blk.0.attn_v.weight.lora_a f32 64,4",
    "blk.0.attn_v.weight.lora_b f32 4,32",
    "blk.1.ffn_up.weight.lora_a f32 64,4",
    "blk.1.ffn_up.weight.lora_b f32 4,96",
  ]);
  const bytes = gguf.read("blk.1.ffn_up.weight.lora_b").slice();
  expect(new Float32Array(bytes.buffer)).toEqual(values(96 * 4, 2));
  expect(Object.fromEntries(gguf.metadata)).toEqual({
    "general.architecture": "llama",
    "general.type": "adapter",
    "adapter.type": "lora",
    "adapter.lora.alpha": 8,
  });
  gguf.close();
});

test("rows of B are permuted like the rows of the base's weight", async () => {
  const rows = values(32 * 4, 5);
  const stored = { dtype: "F16", shape: [32, 4], data: pack(unpaired(rows, 2, 32), f16) };
  const pair = {
    [`${PREFIX}.0.self_attn.k_proj.lora_A.weight`]: plain([4, 64], 6),
    [`${PREFIX}.0.self_attn.k_proj.lora_B.weight`]: stored,
  };
  const llama = await convert(pair);
  const qwen = await convert(pair, { base: { ...BASE, arch: "qwen2" } });
  const read = (gguf: typeof llama) => new Float32Array(gguf.read("blk.0.attn_k.weight.lora_b").slice().buffer);
  expect(read(llama)).toEqual(rows);
  expect(read(qwen)).toEqual(unpaired(rows, 2, 32)); // the rows keep their order
  llama.close();
  qwen.close();
});

test("the alpha of a rank-stabilized adapter is scaled to give the same factor", async () => {
  const gguf = await convert(PAIR, { config: { use_rslora: true } });
  expect(gguf.metadata.get("adapter.lora.alpha")).toBe(16); // 16 / 4 = 8 / √4
  gguf.close();
});

/** A matrix of a file, and the same with rows and columns exchanged. */
const exchanged = ([rows = 0, columns = 0]: number[], numbers: Float32Array<ArrayBuffer>) =>
  Float32Array.from({ length: rows * columns }, (_, i) => numbers[(i % rows) * columns + Math.floor(i / rows)]!);

test("an MLX adapter with its transposed matrices converts to the same file as its PEFT form", async () => {
  const layer = "model.layers.0.self_attn.k_proj";
  const [a, b] = [values(4 * 64, 6), values(32 * 4, 5)];
  const plainOf = (shape: number[], numbers: Float32Array<ArrayBuffer>): PlainTensor => ({
    dtype: "F32",
    shape,
    data: new Uint8Array(numbers.buffer),
  });
  const peft = await convert({
    [`base_model.model.${layer}.lora_A.weight`]: plainOf([4, 64], a),
    [`base_model.model.${layer}.lora_B.weight`]: plainOf([32, 4], b),
  });
  const folder = await writeFolder(join(root, crypto.randomUUID()), {
    "adapter_config.json": {
      fine_tune_type: "lora",
      num_layers: 2,
      lora_parameters: { rank: 4, scale: 2, dropout: 0, keys: ["self_attn.k_proj"] },
    },
    "adapters.safetensors": encodeSafetensors({
      [`${layer}.lora_a`]: plainOf([64, 4], exchanged([4, 64], a)),
      [`${layer}.lora_b`]: plainOf([4, 32], exchanged([32, 4], b)),
    }),
  });
  const to = join(root, `${crypto.randomUUID()}.gguf`);
  await convertAdapter({ folder: { ...folder, label: "folder" }, base: BASE, to });
  const mlx = openGguf(to);
  for (const name of ["blk.0.attn_k.weight.lora_a", "blk.0.attn_k.weight.lora_b"]) {
    expect(mlx.tensors.get(name)!.shape).toEqual(peft.tensors.get(name)!.shape);
    expect(mlx.read(name)).toEqual(peft.read(name));
  }
  expect(mlx.metadata.get("adapter.lora.alpha")).toBe(8); // as in CONFIG: twice the rank
  peft.close();
  mlx.close();
});

test("an adapter of the embedding has a row of A for every token, and the base's weight beside it is ignored", async () => {
  const embedding = "base_model.model.model.embed_tokens";
  const gguf = await convert({
    [`${embedding}.lora_embedding_A`]: plain([4, 100], 1),
    [`${embedding}.lora_embedding_B`]: plain([64, 4], 2),
    [`${embedding}.base_layer.weight`]: plain([100, 64], 3),
  });
  expect([...gguf.tensors.values()].map(({ name, shape }) => `${name} ${shape}`).sort()).toEqual([
    "token_embd.weight.lora_a 4,100",
    "token_embd.weight.lora_b 4,64",
  ]);
  const read = (name: string) => new Float32Array(gguf.read(name).slice().buffer);
  expect(read("token_embd.weight.lora_a")).toEqual(exchanged([4, 100], values(400, 1)));
  expect(read("token_embd.weight.lora_b")).toEqual(values(256, 2));
  gguf.close();
});

const half = Object.fromEntries(Object.entries(PAIR).slice(0, 1));
test.each<[string, Record<string, PlainTensor>, { config?: object; base?: typeof BASE }, string]>([
  ["an unknown base", PAIR, { base: { ...BASE, arch: "rwkv6" } }, "expected an adapter for a base of apertus, arcee, "],
  [
    "a base of several kinds of layers",
    PAIR,
    { base: { ...BASE, arch: "kimi-k3" } },
    "for a base of 'kimi-k3' cannot be converted",
  ],
  [
    "DoRA",
    PAIR,
    { config: { use_dora: true } },
    "'use_dora': expected false, which is all that a GGUF can say, got true",
  ],
  ["biases", PAIR, { config: { bias: "all" } }, "'bias': expected none, which is all that a GGUF can say, got \"all\""],
  [
    "alphas by weight",
    PAIR,
    { config: { alpha_pattern: { q: 1 } } },
    "'alpha_pattern': expected one alpha for all weights",
  ],
  ["no alpha", PAIR, { config: { lora_alpha: null } }, "'lora_alpha': expected a number, got nothing"],
  ["MLX's DoRA", PAIR, { config: { fine_tune_type: "dora" } }, "'fine_tune_type': expected lora, which is all"],
  ["A without B", half, {}, "adapter of 'blk.1.ffn_up.weight': expected a matrix A and a matrix B, got only A"],
  [
    "two ranks",
    { ...PAIR, [`${PREFIX}.1.mlp.up_proj.lora_B.weight`]: plain([96, 5], 1) },
    {},
    "expected (rank, in) and (out, rank), a rank of at most 4096, got (4, 64) and (96, 5)",
  ],
  [
    "a weight that the base has not",
    { [`${PREFIX}.7.mlp.up_proj.lora_A.weight`]: plain([4, 64], 1) },
    {},
    "no LoRA of a weight that 'llama' has in 2 layers",
  ],
  [
    "a whole weight",
    { "base_model.model.lm_head.weight": plain([4, 64], 1) },
    {},
    "tensor 'base_model.model.lm_head.weight': no LoRA",
  ],
  ["nothing", {}, {}, "expected tensors of an adapter, got none"],
])("%s is refused", async (_, tensors, options, message) => {
  await expect(convert(tensors, options)).rejects.toThrow(message);
});

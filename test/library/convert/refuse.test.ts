/** Folders that cannot be converted, each with a clear error. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { encodeSafetensors, exactModel, plainConfig, plainFiles, plainTensors, writeFolder } from "./hugging-face.ts";
import { DTYPES } from "./hugging-face.ts";

let root = "";
beforeAll(async () => void (root = await mkdtemp(join(tmpdir(), "hearth-refuse-"))));
afterAll(() => rm(root, { recursive: true }));

type Tensors = ReturnType<typeof plainTensors>;

interface Change {
  readonly name?: string;
  readonly config?: object;
  readonly tensors?: (tensors: Tensors) => Tensors;
}

async function convert({ name = "llama", config = {}, tensors = (own) => own }: Change) {
  const model = exactModel(name, DTYPES.F16);
  const files = {
    ...plainFiles(model, "F16"),
    "config.json": { ...plainConfig(model), ...config },
    "model.safetensors": encodeSafetensors(tensors(plainTensors(model, "F16"))),
  };
  const folder = await writeFolder(join(root, crypto.randomUUID()), files);
  const to = join(root, `${crypto.randomUUID()}.gguf`);
  const { notes } = await convertModel({ folder: { ...folder, label: "folder" }, to });
  const gguf = openGguf(to);
  gguf.close();
  return { notes, gguf };
}

const Q = "model.layers.1.self_attn.q_proj.weight";
const without = (name: string) => (tensors: Tensors) =>
  Object.fromEntries(Object.entries(tensors).filter(([own]) => own !== name));
const scaling = (rope: object) => ({ rope_scaling: rope });

test.each<[string, Change, string]>([
  [
    "an unknown architecture",
    { config: { architectures: ["FooForCausalLM"] } },
    "unsupported architecture \"FooForCausalLM\": folder: 'architectures': expected one of ApertusForCausalLM, ",
  ],
  ["no architecture", { config: { architectures: undefined } }, "unknown architecture: folder: 'architectures'"],
  [
    "a missing size",
    { config: { hidden_size: null } },
    "folder: 'config.json': 'hidden_size': expected a whole number, got nothing",
  ],
  [
    "a size that is none",
    { config: { hidden_size: 1e12 } },
    "'hidden_size': expected a whole number of 1 … 2147483647, got 1000000000000",
  ],
  [
    "more layers than any model has",
    { config: { num_hidden_layers: 2 ** 31 - 1 } },
    "'num_hidden_layers': expected a whole number of 1 … 512, got 2147483647",
  ],
  [
    "heads larger than any model's",
    { config: { head_dim: 1e9, rope_scaling: { rope_type: "llama3", factor: 8 } } },
    "'head_dim': expected heads of at most 2048, got 1000000000",
  ],
  ["another activation", { config: { hidden_act: "relu" } }, "'hidden_act': expected silu, got 'relu'"],
  [
    "an unknown rotation",
    { config: scaling({ rope_type: "dynamic", factor: 2 }) },
    "rope_type: expected default, linear, yarn, longrope or llama3, got 'dynamic'",
  ],
  [
    "heads that the rows cannot be dealt out to",
    { config: { num_attention_heads: 5 } },
    "tensor 'model.layers.0.self_attn.q_proj.weight': expected 5 heads of an even number of rows, got 64 rows",
  ],
  ["a layer too many", { config: { num_hidden_layers: 1 } }, "tensor 'model.layers.1."],
  ["a layer too few", { config: { num_hidden_layers: 3 } }, "expected a weight for 'blk.2.attn_norm.weight', got none"],
  ["a missing tensor", { tensors: without(Q) }, "expected a weight for 'blk.1.attn_q.weight', got none"],
  [
    "a bias in one layer only",
    {
      tensors: (own) => ({
        ...own,
        "model.layers.1.mlp.up_proj.bias": { dtype: "F16", shape: [96], data: new Uint8Array(192) },
      }),
    },
    "expected a weight for 'blk.0.ffn_up.bias', got none",
  ],
  [
    "an unknown tensor",
    { tensors: (own) => ({ ...own, "model.layers.0.extra.weight": own[Q]! }) },
    "tensor 'model.layers.0.extra.weight': 'llama' has no such weight, and without it the answers would be wrong",
  ],
  [
    "integers",
    { tensors: (own) => ({ ...own, [Q]: { ...own[Q]!, dtype: "I16" } }) },
    `tensor '${Q}': expected weights of F32, F16, BF16, got I16`,
  ],
  [
    "float64",
    { tensors: (own) => ({ ...own, [Q]: { dtype: "F64", shape: [64, 64], data: new Uint8Array(8 * 64 * 64) } }) },
    `tensor '${Q}': expected weights of F32, F16, BF16, got F64`,
  ],
  [
    "a weight that F16 cannot hold",
    {
      tensors: (own) => ({
        ...own,
        [Q]: { dtype: "F32", shape: [64, 64], data: new Uint8Array(new Float32Array(64 * 64).fill(1e6).buffer) },
      }),
    },
    "expected weights that F16 can hold, up to 65504, got 1000000",
  ],
  [
    "a scale of attention that the sizes do not imply",
    { name: "gemma2", config: { query_pre_attn_scalar: 99 } },
    "'query_pre_attn_scalar': expected 16, which its sizes imply, got 99",
  ],
  [
    "full attention at no period",
    { name: "gemma3", config: { layer_types: Array(7).fill("full_attention").fill("sliding_attention", 2, 4) } },
    "'layer_types': expected full attention at a regular period",
  ],
  [
    "factors of another length",
    { name: "phi3", config: scaling({ rope_type: "longrope", long_factor: [1], short_factor: [1] }) },
    "expected a 'long_factor' of 8 numbers",
  ],
])("%s is refused", async (_, change, message) => {
  await expect(convert(change)).rejects.toThrow(message);
});

test("weights of image encoders are left out with a note", async () => {
  const vision = { "vision_tower.a.weight": { dtype: "F16", shape: [2], data: new Uint8Array(4) } };
  const { notes } = await convert({ tensors: (own) => ({ ...own, ...vision }) });
  expect(notes).toEqual(["left out 1 tensors of image or audio encoders"]);
});

test("an output that is tied to the embedding is not stored twice", async () => {
  const { gguf } = await convert({ config: { tie_word_embeddings: true } });
  expect(gguf.tensors.has("output.weight")).toBe(false);
  expect((await convert({})).gguf.tensors.has("output.weight")).toBe(true);
});

test("a missing output is replaced by the embedding, with a note if the configuration says that it is not tied", async () => {
  const config = { tie_word_embeddings: false };
  const tensors = without("lm_head.weight");
  const { notes, gguf } = await convert({ config, tensors });
  expect(notes).toEqual([
    "'tie_word_embeddings' is false and 'lm_head.weight' is missing: the embedding is the output",
  ]);
  expect(gguf.tensors.has("output.weight")).toBe(false);
  expect((await convert({ config: { tie_word_embeddings: undefined }, tensors })).notes).toEqual([]);
  expect((await convert({ config })).notes).toEqual([]);
  expect((await convert({ name: "gemma2", config })).notes).toEqual([]); // it never has one
});

test("Llama 3.1's RoPE scaling becomes divisors of frequencies", async () => {
  const rope = {
    rope_type: "llama3",
    factor: 8,
    low_freq_factor: 1,
    high_freq_factor: 4,
    original_max_position_embeddings: 64,
  };
  const { gguf } = await convert({ config: scaling(rope) });
  const info = gguf.tensors.get("rope_freqs.weight")!;
  const bytes = await Bun.file(gguf.path)
    .slice(info.offset, info.offset + info.byteLength)
    .bytes();
  const waves = Array.from({ length: 8 }, (_, i) => 2 * Math.PI * 10_000 ** (i / 8));
  const expected = waves.map((wave) => {
    const smooth = Math.min(1, Math.max(0, (64 / wave - 1) / 3)); // 1: original, 0: eight times slower
    return 1 / ((1 - smooth) / 8 + smooth);
  });
  expect(new Float32Array(bytes.buffer)).toEqual(Float32Array.from(expected));
});

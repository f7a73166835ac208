import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { convertModel } from "../../../src/library/convert/convert.ts";
import type { Gguf } from "../../../src/engine/formats/gguf/gguf.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { golden, goldenTest } from "../../golden.ts";
import { wpmMetadata } from "../../engine/text/tokenizer/fixtures.ts";
import { encodeSafetensors, writeFolder, type PlainTensor } from "./hugging-face.ts";
import { wordPieceJson } from "./tokenizer-files.ts";

let root = "";
beforeAll(async () => void (root = await mkdtemp(join(tmpdir(), "hearth-bert-"))));
afterAll(() => rm(root, { recursive: true }));

const NAMES: Readonly<Record<string, string>> = {
  token_embd: "embeddings.word_embeddings",
  position_embd: "embeddings.position_embeddings",
  token_types: "embeddings.token_type_embeddings",
  token_embd_norm: "embeddings.LayerNorm",
};
const LAYER: Readonly<Record<string, string>> = {
  attn_q: "attention.self.query",
  attn_k: "attention.self.key",
  attn_v: "attention.self.value",
  attn_output: "attention.output.dense",
  attn_output_norm: "attention.output.LayerNorm",
  ffn_up: "intermediate.dense",
  ffn_down: "output.dense",
  layer_output_norm: "output.LayerNorm",
};

function plainName(name: string): string {
  const [, layer, weight = "", part] = /^(?:blk\.(\d+)\.)?(\w+)\.(\w+)$/.exec(name)!;
  return layer === undefined ? `${NAMES[weight]}.${part}` : `encoder.layer.${layer}.${LAYER[weight]}.${part}`;
}

const shapes = (dim: number, ffn: number, vocab: number): Record<string, number[]> => {
  const layer = {
    "attn_q.weight": [dim, dim],
    "attn_q.bias": [dim],
    "attn_k.weight": [dim, dim],
    "attn_k.bias": [dim],
    "attn_v.weight": [dim, dim],
    "attn_v.bias": [dim],
    "attn_output.weight": [dim, dim],
    "attn_output.bias": [dim],
    "attn_output_norm.weight": [dim],
    "attn_output_norm.bias": [dim],
    "ffn_up.weight": [ffn, dim],
    "ffn_up.bias": [ffn],
    "ffn_down.weight": [dim, ffn],
    "ffn_down.bias": [dim],
    "layer_output_norm.weight": [dim],
    "layer_output_norm.bias": [dim],
  };
  return {
    "token_embd.weight": [vocab, dim],
    "position_embd.weight": [32, dim],
    "token_types.weight": [2, dim],
    "token_embd_norm.weight": [dim],
    "token_embd_norm.bias": [dim],
    ...Object.fromEntries(
      [0, 1].flatMap((i) => Object.entries(layer).map(([name, shape]) => [`blk.${i}.${name}`, shape])),
    ),
  };
};

const CONFIG = {
  architectures: ["BertModel"],
  hidden_act: "gelu",
  hidden_size: 16,
  num_hidden_layers: 2,
  intermediate_size: 24,
  num_attention_heads: 2,
  max_position_embeddings: 32,
  layer_norm_eps: 1e-12,
  type_vocab_size: 2,
};
const SPECIAL = { cls_token: "[CLS]", sep_token: "[SEP]", unk_token: "[UNK]", pad_token: "[PAD]" };

/** Files of sentence-transformers. */
const pooling = (...modes: string[]) => ({
  word_embedding_dimension: 16,
  ...Object.fromEntries(
    ["mean_tokens", "cls_token", "max_tokens"].map((mode) => [`pooling_mode_${mode}`, modes.includes(mode)]),
  ),
});

async function convert(tensors: Record<string, PlainTensor>, more: Record<string, object> = {}): Promise<Gguf> {
  const own = wpmMetadata(["▁a", "▁b", "a", "b"]);
  const folder = await writeFolder(join(root, crypto.randomUUID()), {
    "config.json": CONFIG,
    "tokenizer.json": wordPieceJson(own),
    "tokenizer_config.json": SPECIAL,
    "model.safetensors": encodeSafetensors(tensors),
    ...more,
  });
  const to = join(root, `${crypto.randomUUID()}.gguf`);
  await convertModel({ folder: { ...folder, label: "folder" }, to });
  return openGguf(to);
}

function random(dtype: "F16" | "F32", prefix = ""): Record<string, PlainTensor> {
  const entries = Object.entries(shapes(16, 24, 8)).map(([name, shape], seed): [string, PlainTensor] => {
    const count = shape.reduce((product, size) => product * size, 1);
    const values = Float32Array.from({ length: count }, (_, i) => Math.fround(Math.sin(seed + i)));
    const data = dtype === "F32" ? values : new Float16Array(values);
    return [prefix + plainName(name), { dtype, shape, data: new Uint8Array(data.buffer) }];
  });
  return Object.fromEntries(entries);
}

test("bert: metadata, names and types of every tensor", async () => {
  const pooler = { dtype: "F32", shape: [1], data: new Uint8Array(4) };
  const positions = { dtype: "I64", shape: [1], data: new Uint8Array(8) };
  const gguf = await convert(
    { ...random("F32", "bert."), "bert.pooler.dense.bias": pooler, "embeddings.position_ids": positions },
    { "1_Pooling/config.json": pooling("mean_tokens") },
  );
  const types = [...gguf.tensors.values()].map(({ name, quant, shape }) => [name, quant.name, shape.toReversed()]);
  const isMatrix = (name: string) => /(token_embd|attn_\w+|ffn_\w+)\.weight$/.test(name) && !name.includes("norm");
  expect(Object.fromEntries(types.map(([name, ...rest]) => [name, rest]))).toEqual(
    Object.fromEntries(
      Object.entries(shapes(16, 24, 8)).map(([name, shape]) => [name, [isMatrix(name) ? "f16" : "f32", shape]]),
    ),
  );
  const key = (name: string) => gguf.metadata.get(name);
  expect(
    ["context_length", "embedding_length", "block_count", "feed_forward_length"].map((name) => key(`bert.${name}`)),
  ).toEqual([32, 16, 2, 24]);
  expect([key("bert.attention.head_count"), key("bert.attention.causal"), key("bert.pooling_type")]).toEqual([
    2,
    false,
    1,
  ]);
  expect(key("tokenizer.ggml.token_type_count")).toBe(2);
  expect([key("tokenizer.ggml.cls_token_id"), key("tokenizer.ggml.bos_token_id")]).toEqual([2, 2]);
  gguf.close();
});

test("bert: pooling follows its file, and a mode without a number in GGUF is refused", async () => {
  const cls = await convert(random("F16"), { "1_Pooling/config.json": pooling("cls_token") });
  expect(cls.metadata.get("bert.pooling_type")).toBe(2);
  cls.close();
  for (const [mode, type] of [["mean", 1] as const, [["lasttoken"], 3] as const]) {
    const named = await convert(random("F16"), {
      "1_Pooling/config.json": { embedding_dimension: 16, pooling_mode: mode, include_prompt: true },
    });
    expect(named.metadata.get("bert.pooling_type")).toBe(type);
    named.close();
  }
  await expect(convert(random("F16"), { "1_Pooling/config.json": { pooling_mode: ["mean", "max"] } })).rejects.toThrow(
    "expected one of mean, cls, lasttoken, got mean, max",
  );
  await expect(convert(random("F16"), { "1_Pooling/config.json": pooling("max_tokens") })).rejects.toThrow(
    "folder: '1_Pooling/config.json': expected one of mean, cls, lasttoken, got pooling_mode_max_tokens",
  );
  const modules = [
    { type: "sentence_transformers.models.Transformer" },
    { type: "sentence_transformers.models.Dense" },
  ];
  await expect(convert(random("F16"), { "modules.json": modules })).rejects.toThrow(
    "folder: 'modules.json': expected Transformer, Pooling and Normalize, got \"sentence_transformers.models.Dense\"",
  );
});

goldenTest("bert: a folder made from a reference model converts back to its tensors", async () => {
  const reference = openGguf(golden("bert/bert-cls.gguf"));
  const tensors = Object.fromEntries(
    [...reference.tensors.values()].map(({ name, shape, quant }) => [
      plainName(name),
      { dtype: quant.name.toUpperCase(), shape: shape.toReversed(), data: reference.read(name).slice() },
    ]),
  );
  const sizes = { hidden_size: 64, num_hidden_layers: 3, intermediate_size: 256, num_attention_heads: 4 };
  const gguf = await convert(tensors, {
    "config.json": { ...CONFIG, ...sizes, max_position_embeddings: 512 },
    "tokenizer.json": wordPieceJson(reference.metadata),
  });
  const listed = ({ tensors: infos, read }: Gguf) =>
    [...infos.values()]
      .map(({ name, quant, shape }) => `${name} ${quant.name} ${shape} ${Bun.hash(read(name))}`)
      .sort();
  expect(listed(gguf)).toEqual(listed(reference));
  for (const [key, value] of reference.metadata) {
    // keys that this test sets to other values, or omits
    if (/name$|pre$|mask_token|token_type$|pooling|file_type/.test(key)) continue;
    expect([key, gguf.metadata.get(key)]).toEqual([key, value]);
  }
  gguf.close();
  reference.close();
});

/**
 * Model folders in Hugging Face's layout, made from the models in test/engine/architectures/models.ts: the inverse of
 * every name, row order and shift of the conversion, written independently.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { bf16 } from "../../../src/engine/formats/quant/bf16.ts";
import { f16 } from "../../../src/engine/formats/quant/f16.ts";
import { f32 } from "../../../src/engine/formats/quant/f32.ts";
import type { Quant } from "../../../src/engine/formats/quant/quant.ts";
import type { WriteModel, WriteTensor, WriteValue } from "../../../src/engine/formats/files/write.ts";
import { makeModel } from "../../engine/architectures/models.ts";

export interface PlainTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** The bytes of a safetensors file. */
export function encodeSafetensors(tensors: Readonly<Record<string, PlainTensor>>): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  let at = 0;
  for (const [name, { dtype, shape, data }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [at, at + data.length] };
    at += data.length;
  }
  const text = JSON.stringify(header);
  const padded = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  return Buffer.concat([length, padded, ...Object.values(tensors).map(({ data }) => data)]);
}

type Values = Float32Array<ArrayBuffer>;

export const DTYPES = { F16: f16, BF16: bf16, F32: f32 } as const satisfies Record<string, Quant>;
export type Dtype = keyof typeof DTYPES;

export function pack(values: Values, quant: Quant): Uint8Array {
  const bytes = new Uint8Array(values.length * quant.blockBytes);
  quant.quantize!(values, bytes);
  return bytes;
}

const valuesOf = ({ data }: WriteTensor): Values => new Float32Array((data as Uint8Array).slice().buffer);

function round(values: Values, quant: Quant): Values {
  const out = new Float32Array(values.length);
  quant.dequantize(pack(values, quant), out);
  return out;
}

/** A model whose weights survive conversion exactly: matrices are rounded, norms can lose their 1 and get it back. */
export function exactModel(name: string, matrices: Quant): WriteModel {
  const { metadata, tensors } = makeModel(name);
  const shift = String(metadata["general.architecture"]).startsWith("gemma") ? 1 : 0;
  return {
    metadata: { ...metadata, "general.name": name },
    tensors: tensors.map((tensor) => {
      const { shape, name: own } = tensor;
      if (shape.length > 1)
        return { ...tensor, quant: matrices, data: pack(round(valuesOf(tensor), matrices), matrices) };
      const values = valuesOf(tensor).map((value) =>
        own.endsWith(".bias") ? value : Math.fround(value - shift) + shift,
      );
      return { ...tensor, data: new Uint8Array(values.buffer) };
    }),
  };
}

/** Hugging Face's names for the tensors of a layer, by GGUF's. */
const LAYER: Readonly<Record<string, string>> = {
  attn_norm: "input_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  attn_qkv: "self_attn.qkv_proj",
  attn_output: "self_attn.o_proj",
  attn_q_norm: "self_attn.q_norm",
  attn_k_norm: "self_attn.k_norm",
  ffn_norm: "post_attention_layernorm",
  ffn_gate: "mlp.gate_proj",
  ffn_up: "mlp.up_proj",
  ffn_down: "mlp.down_proj",
};
const SANDWICH: Readonly<Record<string, string>> = {
  post_attention_norm: "post_attention_layernorm",
  ffn_norm: "pre_feedforward_layernorm",
  post_ffw_norm: "post_feedforward_layernorm",
};
const GLOBAL: Readonly<Record<string, string>> = {
  token_embd: "model.embed_tokens",
  output_norm: "model.norm",
  output: "lm_head",
};

export function plainName(name: string, arch: string): string {
  const [, layer, weight = "", part] = /^(?:blk\.(\d+)\.)?(\w+)\.(\w+)$/.exec(name)!;
  if (layer === undefined) return `${GLOBAL[weight]}.${part}`;
  const own = (/^gemma[23]$/.test(arch) ? SANDWICH[weight] : undefined) ?? LAYER[weight];
  const fused = arch === "phi3" && weight === "ffn_up" ? "mlp.gate_up_proj" : own;
  return `model.layers.${layer}.${fused}.${part}`;
}

/** Rows of a head from pairs to halves. */
export function unpaired(values: Values, heads: number, rows: number): Values {
  const out = new Float32Array(values.length);
  const width = values.length / rows;
  const headDim = rows / heads;
  for (let row = 0; row < rows; row++) {
    const [head, within] = [Math.floor(row / headDim), row % headDim];
    const to = head * headDim + (within % 2) * (headDim / 2) + Math.floor(within / 2);
    out.set(values.subarray(row * width, (row + 1) * width), to * width);
  }
  return out;
}

const numberAt = (metadata: WriteModel["metadata"], key: string): number | undefined => {
  const value = metadata[key];
  return typeof value === "object" && ("u32" in value || "f32" in value)
    ? Number(Object.values(value as Record<string, number>)[0])
    : undefined;
};

/** The safetensors of a model. Rope factors are part of the configuration there. */
export function plainTensors({ metadata, tensors }: WriteModel, dtype: Dtype): Record<string, PlainTensor> {
  const arch = String(metadata["general.architecture"]);
  const heads = (key: string): number => numberAt(metadata, `${arch}.attention.${key}`)!;
  const plain: Record<string, PlainTensor> = {};
  for (const tensor of tensors.filter(({ name }) => !name.startsWith("rope_"))) {
    const shape = tensor.shape.toReversed();
    let values = new Float32Array(shape.reduce((product, size) => product * size, 1));
    tensor.quant.dequantize(tensor.data as Uint8Array, values);
    const part = /attn_([qk])\./.exec(tensor.name)?.[1];
    if (arch === "llama" && part) {
      values = unpaired(values, heads(part === "q" ? "head_count" : "head_count_kv"), shape[0]!);
    }
    if (arch.startsWith("gemma") && shape.length === 1) values = values.map((value) => value - 1);
    const isExact = shape.length > 1 ? dtype : "F32";
    plain[plainName(tensor.name, arch)] = { dtype: isExact, shape, data: pack(values, DTYPES[isExact]) };
  }
  return plain;
}

const CLASSES: Readonly<Record<string, string>> = {
  llama: "LlamaForCausalLM",
  qwen2: "Qwen2ForCausalLM",
  qwen3: "Qwen3ForCausalLM",
  gemma: "GemmaForCausalLM",
  gemma2: "Gemma2ForCausalLM",
  gemma3: "Gemma3ForCausalLM",
  phi3: "Phi3ForCausalLM",
};

/** `config.json` of a model. */
export function plainConfig({ metadata, tensors }: WriteModel): Record<string, unknown> {
  const arch = String(metadata["general.architecture"]);
  const key = (name: string): number | undefined => numberAt(metadata, `${arch}.${name}`);
  const isGemma = arch.startsWith("gemma");
  return {
    architectures: [CLASSES[arch]],
    model_type: arch,
    [isGemma ? "hidden_activation" : "hidden_act"]: isGemma ? "gelu_pytorch_tanh" : "silu",
    hidden_size: key("embedding_length"),
    num_hidden_layers: key("block_count"),
    intermediate_size: key("feed_forward_length"),
    num_attention_heads: key("attention.head_count"),
    num_key_value_heads: key("attention.head_count_kv"),
    head_dim: key("attention.key_length"),
    max_position_embeddings: key("context_length"),
    rms_norm_eps: key("attention.layer_norm_rms_epsilon"),
    rope_theta: key("rope.freq_base") ?? 10_000,
    rope_scaling: ropeScaling({ metadata, tensors }, arch),
    sliding_window: key("attention.sliding_window") ?? null,
    original_max_position_embeddings: arch === "phi3" ? (key("rope.scaling.original_context_length") ?? 512) : null,
    attn_logit_softcapping: key("attn_logit_softcapping") ?? null,
    final_logit_softcapping: key("final_logit_softcapping") ?? null,
    tie_word_embeddings: !tensors.some(({ name }) => name === "output.weight"),
    vocab_size: 64,
    bos_token_id: 0,
    eos_token_id: 1,
  };
}

function ropeScaling({ metadata, tensors }: WriteModel, arch: string): unknown {
  const key = (name: string): number | undefined => numberAt(metadata, `${arch}.rope.scaling.${name}`);
  const factors = (kind: string): number[] => [
    ...valuesOf(tensors.find(({ name }) => name === `rope_factors_${kind}.weight`)!),
  ];
  if (arch === "phi3") {
    const more = { long_factor: factors("long"), short_factor: factors("short") };
    return { rope_type: "longrope", ...more, attention_factor: key("attn_factor") ?? 1 };
  }
  const type = metadata[`${arch}.rope.scaling.type`];
  if (type === undefined) return null;
  const original = key("original_context_length");
  return {
    rope_type: type,
    factor: key("factor"),
    ...(original === undefined ? {} : { original_max_position_embeddings: original }),
  };
}

/** `tokenizer.json` of a byte-level BPE. */
export function byteTokenizer(metadata: Readonly<Record<string, WriteValue>>): Record<string, unknown> {
  const pieces = metadata["tokenizer.ggml.tokens"] as string[];
  return {
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    decoder: { type: "ByteLevel" },
    model: {
      type: "BPE",
      vocab: Object.fromEntries(pieces.map((piece, id) => [piece, id])),
      merges: metadata["tokenizer.ggml.merges"],
    },
  };
}

/** Writes the files of a folder and returns it in the converter's format. */
export async function writeFolder(path: string, files: Readonly<Record<string, string | Uint8Array | object>>) {
  const paths = new Map<string, string>();
  for (const [name, content] of Object.entries(files)) {
    const to = join(path, name);
    await mkdir(join(to, ".."), { recursive: true });
    await Bun.write(
      to,
      content instanceof Uint8Array || typeof content === "string" ? content : JSON.stringify(content),
    );
    paths.set(name, to);
  }
  return { label: path, files: paths };
}

/** Every file of a folder. */
export function plainFiles(model: WriteModel, dtype: Dtype): Record<string, object> {
  return {
    "config.json": plainConfig(model),
    "tokenizer.json": byteTokenizer(model.metadata),
    "model.safetensors": encodeSafetensors(plainTensors(model, dtype)),
  };
}

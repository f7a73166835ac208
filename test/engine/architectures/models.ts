/**
 * Tiny models of every architecture, made in code from seeded random numbers, strong enough in every part that omitting
 * one shows. `logits/NAME.f32` holds llama.cpp's logits for them, written by bench/record-arch-logits.ts.
 */
import { makeRng } from "../../../src/engine/text/rng.ts";
import type { WriteModel, WriteTensor, WriteValue } from "../../../src/engine/formats/files/write.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { gaussians } from "../../conformance/weights.ts";
import { families, makeFamily } from "./families.ts";

export const VOCAB = 64;
/** The models' input. */
export const TOKENS: Int32Array = Int32Array.from({ length: 24 }, (_, i) => (i * 23 + 7) % VOCAB);
/** Positions whose logits are recorded: the last of TOKENS. */
export const RECORDED = 6;
/** Context of the recording: longrope depends on it. */
export const CTX_LEN = 256;

interface Spec {
  readonly arch: string;
  readonly nLayers: number;
  readonly dim?: number;
  readonly nHeads?: number;
  readonly nKvHeads?: number;
  readonly headDim?: number;
  readonly ffnDim?: number;
  readonly keys?: Readonly<Record<string, WriteValue>>;
  /** Biases that exist. */
  readonly biases?: readonly ("qkv" | "output" | "mlp")[];
  /** Norms of query and key: one weight for each head, or for the whole row. */
  readonly qkNorm?: "head" | "row";
  /** Norms before and after each block. */
  readonly norms?: "before" | "after" | "both";
  readonly fused?: boolean;
  readonly experts?: number;
  readonly sharedFfnDim?: number;
  readonly tied?: boolean;
  /** Vectors of (headDim / 2) around 1. */
  readonly factors?: readonly ("rope_freqs" | "rope_factors_short" | "rope_factors_long")[];
}

const f32 = (value: number): WriteValue => ({ f32: value });
const u32 = (value: number): WriteValue => ({ u32: value });

const yarn = {
  "rope.scaling.type": "yarn",
  "rope.scaling.factor": f32(4),
  "rope.scaling.original_context_length": u32(64),
};

export const specs: Readonly<Record<string, Spec>> = {
  llama: { arch: "llama", nLayers: 2 },
  "llama-tied-factors": { arch: "llama", nLayers: 2, tied: true, factors: ["rope_freqs"] },
  "llama-linear": {
    arch: "llama",
    nLayers: 2,
    keys: { "rope.scaling.type": "linear", "rope.scaling.factor": f32(4), "rope.freq_base": f32(500_000) },
  },
  "llama-yarn": { arch: "llama", nLayers: 2, keys: yarn },
  "llama-biases": { arch: "llama", nLayers: 2, biases: ["qkv", "output", "mlp"] },
  "llama-experts": { arch: "llama", nLayers: 2, experts: 4, keys: { expert_used_count: u32(2) } },
  qwen2: { arch: "qwen2", nLayers: 2, biases: ["qkv"], keys: { "rope.freq_base": f32(1e6) } },
  qwen3: { arch: "qwen3", nLayers: 2, headDim: 32, qkNorm: "head" },
  qwen3moe: {
    arch: "qwen3moe",
    nLayers: 2,
    qkNorm: "head",
    experts: 4,
    ffnDim: 48,
    keys: { expert_used_count: u32(3), expert_feed_forward_length: u32(48) },
  },
  gemma: { arch: "gemma", nLayers: 2, headDim: 32, nKvHeads: 1, tied: true },
  gemma2: {
    arch: "gemma2",
    nLayers: 4,
    norms: "both",
    tied: true,
    keys: {
      "attention.sliding_window": u32(6),
      attn_logit_softcapping: f32(2),
      final_logit_softcapping: f32(10),
    },
  },
  gemma3: {
    arch: "gemma3",
    nLayers: 7,
    norms: "both",
    qkNorm: "head",
    tied: true,
    keys: {
      "attention.sliding_window": u32(6),
      "rope.freq_base": f32(1e6),
      "rope.scaling.type": "linear",
      "rope.scaling.factor": f32(8),
    },
  },
  phi3: { arch: "phi3", nLayers: 2, fused: true, factors: ["rope_factors_short", "rope_factors_long"] },
  "phi3-long": {
    arch: "phi3",
    nLayers: 2,
    fused: true,
    factors: ["rope_factors_short", "rope_factors_long"],
    keys: { "rope.scaling.original_context_length": u32(16), "rope.scaling.attn_factor": f32(1.19) },
  },
  mistral3: {
    arch: "mistral3",
    nLayers: 2,
    keys: {
      ...yarn,
      "rope.scaling.original_context_length": u32(5),
      "rope.scaling.yarn_log_multiplier": f32(0.5),
      "rope.scaling.yarn_beta_fast": f32(4),
      "attention.temperature_scale": f32(0.3),
    },
  },
  granite: {
    arch: "granite",
    nLayers: 2,
    tied: true,
    keys: {
      logit_scale: f32(2),
      residual_scale: f32(0.4),
      embedding_scale: f32(3),
      "attention.scale": f32(0.4),
    },
  },
  granitemoe: {
    arch: "granitemoe",
    nLayers: 2,
    experts: 4,
    sharedFfnDim: 48,
    keys: { logit_scale: f32(2), expert_used_count: u32(2), expert_shared_feed_forward_length: u32(48) },
  },
  olmo2: { arch: "olmo2", nLayers: 2, norms: "after", qkNorm: "row" },
  "olmo2-windows": {
    arch: "olmo2",
    nLayers: 5,
    norms: "after",
    qkNorm: "row",
    keys: { ...yarn, "attention.sliding_window": u32(6) },
  },
  smollm3: { arch: "smollm3", nLayers: 5 },
};

/** All models made in code: those above, and families.ts. */
export const modelNames: readonly string[] = [...Object.keys(specs), ...Object.keys(families)];

/** The architecture of a model. */
export const archOf = (name: string): string => (specs[name] ?? families[name])!.arch;

const made = new Map<string, WriteModel>();

/** A model as in a file. Its tensors are drawn once per process; do not write to them. */
export function makeModel(name: string): WriteModel {
  const known = made.get(name) ?? drawModel(name);
  made.set(name, known);
  return { metadata: { ...known.metadata }, tensors: [...known.tensors] };
}

function drawModel(name: string): WriteModel {
  if (Object.hasOwn(families, name)) return makeFamily(name, vocabulary());
  const spec = specs[name]!;
  const { arch, nLayers, dim = 64, nHeads = 4, nKvHeads = 2, headDim = 16, ffnDim = 96, experts = 0 } = spec;
  const keys: Record<string, WriteValue> = {
    context_length: u32(512),
    embedding_length: u32(dim),
    block_count: u32(nLayers),
    feed_forward_length: u32(ffnDim),
    "attention.head_count": u32(nHeads),
    "attention.head_count_kv": u32(nKvHeads),
    "attention.key_length": u32(headDim),
    "attention.value_length": u32(headDim),
    "attention.layer_norm_rms_epsilon": f32(1e-5),
    "rope.dimension_count": u32(headDim),
    ...(experts > 0 && { expert_count: u32(experts) }),
    ...spec.keys,
  };
  const metadata: Record<string, WriteValue> = { "general.architecture": arch, ...vocabulary() };
  for (const [key, value] of Object.entries(keys)) metadata[`${arch}.${key}`] = value;
  return { metadata, tensors: makeTensors(name, { ...spec, dim, nHeads, nKvHeads, headDim, ffnDim, experts }) };
}

/** llama.cpp requires a vocabulary; ids are fed directly. */
export function vocabulary(): Record<string, WriteValue> {
  const tokens = Array.from({ length: VOCAB }, (_, i) => (i < 26 ? String.fromCharCode(97 + i) : `t${i}`));
  return {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": tokens,
    "tokenizer.ggml.token_type": Int32Array.from(tokens, () => 1),
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.bos_token_id": u32(0),
    "tokenizer.ggml.eos_token_id": u32(1),
  };
}

type Full = Spec & { dim: number; nHeads: number; nKvHeads: number; headDim: number; ffnDim: number; experts: number };

function makeTensors(name: string, spec: Full): WriteTensor[] {
  const { dim, nHeads, nKvHeads, headDim, ffnDim, experts, norms = "before" } = spec;
  const rng = makeRng(Bun.hash.crc32(name));
  const tensors: WriteTensor[] = [];
  const add = (tensor: string, shape: readonly number[], options: { mean?: number; size?: number } = {}): void => {
    const { mean = 0, size = 1 / Math.sqrt(shape[0]!) } = options;
    const count = shape.reduce((a, b) => a * b, 1);
    const values = gaussians(count, rng, (normal) => mean + size * normal);
    tensors.push({ name: tensor, shape, quant: quants.f32, data: new Uint8Array(values.buffer) });
  };
  const norm = (tensor: string, len: number): void => add(`${tensor}.weight`, [len], { mean: 1, size: 0.2 });
  const matrix = (tensor: string, shape: readonly number[], part?: "qkv" | "output" | "mlp"): void => {
    add(`${tensor}.weight`, shape, { size: (part === "qkv" ? 1.6 : 1) / Math.sqrt(shape[0]!) });
    if (part && spec.biases?.includes(part)) add(`${tensor}.bias`, [shape[1]!], { size: 0.3 });
  };

  add("token_embd.weight", [dim, VOCAB], { size: 1 });
  norm("output_norm", dim);
  if (!spec.tied) matrix("output", [dim, VOCAB]);
  for (const factors of spec.factors ?? []) {
    const mean = factors === "rope_factors_long" ? 4 : 2;
    add(`${factors}.weight`, [headDim / 2], { mean, size: 0.3 });
  }
  for (let layer = 0; layer < spec.nLayers; layer++) {
    const blk = `blk.${layer}`;
    const [qDim, kvDim] = [nHeads * headDim, nKvHeads * headDim];
    if (norms !== "after") norm(`${blk}.attn_norm`, dim);
    if (spec.fused) matrix(`${blk}.attn_qkv`, [dim, qDim + 2 * kvDim], "qkv");
    else for (const part of ["q", "k", "v"]) matrix(`${blk}.attn_${part}`, [dim, part === "q" ? qDim : kvDim], "qkv");
    if (spec.qkNorm) {
      norm(`${blk}.attn_q_norm`, spec.qkNorm === "head" ? headDim : qDim);
      norm(`${blk}.attn_k_norm`, spec.qkNorm === "head" ? headDim : kvDim);
    }
    matrix(`${blk}.attn_output`, [qDim, dim], "output");
    if (norms !== "before") norm(`${blk}.post_attention_norm`, dim);
    if (norms !== "after") norm(`${blk}.ffn_norm`, dim);
    if (experts > 0) {
      matrix(`${blk}.ffn_gate_inp`, [dim, experts]);
      for (const part of ["gate", "up"]) matrix(`${blk}.ffn_${part}_exps`, [dim, ffnDim, experts]);
      matrix(`${blk}.ffn_down_exps`, [ffnDim, dim, experts]);
    } else {
      if (!spec.fused) matrix(`${blk}.ffn_gate`, [dim, ffnDim], "mlp");
      matrix(`${blk}.ffn_up`, [dim, spec.fused ? 2 * ffnDim : ffnDim], "mlp");
      matrix(`${blk}.ffn_down`, [ffnDim, dim], "mlp");
    }
    if (spec.sharedFfnDim) {
      for (const part of ["gate", "up"]) matrix(`${blk}.ffn_${part}_shexp`, [dim, spec.sharedFfnDim]);
      matrix(`${blk}.ffn_down_shexp`, [spec.sharedFfnDim, dim]);
    }
    if (norms !== "before") norm(`${blk}.post_ffw_norm`, dim);
  }
  return tensors;
}

/**
 * Tiny models of families whose layers differ from Llama's, tensor by tensor, as in a file: states of every kind (keys
 * and values, shared and latent ones, convolutions, delta rules, scans), experts, windows, gates.
 */
import { makeRng } from "../../../src/engine/text/rng.ts";
import type { WriteModel, WriteTensor, WriteValue } from "../../../src/engine/formats/files/write.ts";
import { i32 } from "../../../src/engine/formats/quant/i32.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { gaussians } from "../../conformance/weights.ts";
import { newerFamilies } from "./newer-families.ts";
import { rwkvFamilies } from "./rwkv-families.ts";
import {
  VOCAB,
  DIM,
  HEAD,
  FFN,
  EXPERTS,
  EXPERT_FFN,
  f32,
  u32,
  each,
  heads,
  experts,
  attention,
  headNorms,
  norms,
  biases,
  mlp,
  plainMlp,
  moe,
  mamba2,
  ssm,
  latent,
  latentKeys,
  deltaLayer,
  kdaLayer,
  gemma3nLayer,
  type Family,
} from "./family-parts.ts";

export const families: Readonly<Record<string, Family>> = {
  ...newerFamilies,
  ...rwkvFamilies,
  qwen35: {
    arch: "qwen35",
    keys: {
      ...heads(4, 2),
      ...ssm(64, HEAD, 2, 4),
      full_attention_interval: u32(2),
      "rope.dimension_count": u32(8),
      "rope.dimension_sections": new Int32Array([2, 1, 1, 0]),
    },
    layers: each(4, (i) => ({
      ...norms("attn_norm", "post_attention_norm"),
      ...(i % 2 === 0 ? deltaLayer : { ...attention(), ...headNorms(), attn_q: [DIM, 2 * 4 * HEAD] }),
      ...mlp(),
    })),
  },
  mamba2: {
    arch: "mamba2",
    keys: { ...heads(0, 0, 0), ...ssm(128, HEAD, 2, 8), feed_forward_length: u32(0) },
    layers: each(2, () => ({ ...norms("attn_norm"), ...mamba2(128, HEAD, 2, 8) })),
  },
  nemotron_h: {
    arch: "nemotron_h",
    keys: {
      ...heads(4, 2),
      ...ssm(128, HEAD, 2, 8),
      "attention.head_count_kv": new Uint32Array([0, 2, 0]),
      feed_forward_length: new Uint32Array([0, 0, FFN]),
      "attention.layer_norm_epsilon": f32(1e-5),
    },
    layers: [
      { ...norms("attn_norm"), ...mamba2(128, HEAD, 2, 8) },
      { ...norms("attn_norm"), ...attention() },
      { ...norms("attn_norm"), ffn_up: [DIM, FFN], ffn_down: [FFN, DIM] },
    ],
  },
  lfm2: {
    arch: "lfm2",
    keys: { ...heads(4, 2), "attention.head_count_kv": new Uint32Array([0, 2, 0]), "shortconv.l_cache": u32(3) },
    outputNorm: "token_embd_norm",
    layers: each(3, (i) => ({
      ...norms("attn_norm", "ffn_norm"),
      ...(i % 2 === 0
        ? { "shortconv.in_proj": [DIM, 3 * DIM], "shortconv.conv": [3, DIM], "shortconv.out_proj": [DIM, DIM] }
        : { ...attention(), ...headNorms() }),
      ...mlp(),
    })),
  },
  bitnet: {
    arch: "bitnet",
    keys: heads(4, 2),
    layers: each(2, () => ({
      ...norms("attn_norm", "attn_sub_norm", "ffn_norm"),
      ...attention(),
      ...mlp(),
      ffn_sub_norm: [FFN],
    })),
  },
  baichuan: {
    arch: "baichuan",
    keys: heads(4, 4),
    shapes: { output: [DIM, VOCAB] },
    layers: each(32, () => ({ ...norms("attn_norm", "ffn_norm"), ...attention(4, 4), ...mlp() })),
  },
  "kimi-linear": {
    arch: "kimi-linear",
    keys: {
      ...experts,
      ...latentKeys,
      "attention.head_count": u32(2),
      "attention.head_count_kv": new Uint32Array([0, 1]),
      "kda.head_dim": u32(HEAD),
      "ssm.conv_kernel": u32(4),
      expert_shared_count: u32(1),
      expert_gating_func: u32(2),
      expert_weights_scale: f32(1.5),
      leading_dense_block_count: u32(1),
    },
    shapes: { output: [DIM, VOCAB] },
    layers: [
      { ...norms("attn_norm", "ffn_norm"), ...kdaLayer, ...mlp() },
      {
        ...norms("attn_norm", "ffn_norm"),
        ...latent(2, 0),
        ...moe(),
        "exp_probs_b.bias": [EXPERTS],
        ...mlp(EXPERT_FFN, "_shexp"),
      },
    ],
  },
  deepseek2: {
    arch: "deepseek2",
    keys: {
      ...experts,
      ...latentKeys,
      "attention.head_count": u32(4),
      "attention.head_count_kv": u32(1),
      "attention.q_lora_rank": u32(24),
      expert_shared_count: u32(1),
      expert_gating_func: u32(2),
      expert_weights_norm: true,
      expert_weights_scale: f32(1.5),
      expert_group_count: u32(2),
      expert_group_used_count: u32(1),
      leading_dense_block_count: u32(1),
    },
    layers: each(2, (i) => ({
      ...norms("attn_norm", "ffn_norm"),
      ...latent(4, 24),
      ...(i === 0 ? mlp() : { ...moe(), "exp_probs_b.bias": [EXPERTS], ...mlp(EXPERT_FFN, "_shexp") }),
    })),
  },
  "gpt-oss": {
    arch: "gpt-oss",
    keys: { ...heads(4, 2), ...experts, "attention.sliding_window": u32(6), "rope.freq_base": f32(150_000) },
    shapes: { output: [DIM, VOCAB] },
    layers: each(2, () => ({
      ...norms("attn_norm", "post_attention_norm"),
      ...biases(attention(), "attn_q", "attn_k", "attn_v", "attn_output"),
      attn_sinks: [4],
      ...biases(moe(), "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"),
    })),
  },
  gemma4: {
    arch: "gemma4",
    keys: {
      ...heads(2, 1, 32),
      "attention.key_length_swa": u32(HEAD),
      "attention.value_length_swa": u32(HEAD),
      "attention.sliding_window": u32(6),
      "attention.sliding_window_pattern": [true, false, true, false],
      "attention.shared_kv_layers": u32(2),
      "rope.freq_base": f32(1e6),
      "rope.freq_base_swa": f32(1e4),
      "rope.dimension_count_swa": u32(HEAD),
      embedding_length_per_layer_input: u32(8),
      final_logit_softcapping: f32(20),
    },
    shapes: {
      rope_freqs: [HEAD],
      per_layer_token_embd: [32, VOCAB],
      per_layer_model_proj: [DIM, 32],
      per_layer_proj_norm: [8],
    },
    layers: each(4, (i) => ({
      ...norms("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "post_norm"),
      ...attention(2, 1, i % 2 === 0 ? HEAD : 32),
      ...headNorms(i % 2 === 0 ? HEAD : 32),
      ...mlp(),
      layer_output_scale: [1],
      inp_gate: [DIM, 8],
      proj: [8, DIM],
    })),
  },
  gemma3n: {
    arch: "gemma3n",
    keys: {
      ...heads(2, 1),
      "attention.sliding_window": u32(6),
      "attention.sliding_window_pattern": [true, false],
      "rope.freq_base": f32(1e6),
      "rope.freq_base_swa": f32(1e4),
    },
    shapes: {
      altup_proj: [DIM, DIM, 3],
      altup_unembd_proj: [DIM, DIM, 3],
      per_layer_token_embd: [512, VOCAB],
      per_layer_model_proj: [DIM, 512],
      per_layer_proj_norm: [256],
    },
    layers: each(2, () => gemma3nLayer),
  },
  laguna: {
    arch: "laguna",
    keys: {
      ...heads(4, 2),
      ...experts,
      "attention.sliding_window": u32(6),
      "rope.freq_base": f32(5e5),
      "rope.freq_base_swa": f32(1e4),
      leading_dense_block_count: u32(1),
      expert_weights_norm: true,
      expert_weights_scale: f32(2),
    },
    layers: each(3, (i) => ({
      ...norms("attn_norm", "ffn_norm"),
      ...attention(),
      ...headNorms(),
      attn_gate: [DIM, 4],
      ...(i === 0 ? mlp() : { ...moe(), "exp_probs_b.bias": [EXPERTS], ...mlp(EXPERT_FFN, "_shexp") }),
    })),
  },
  glm4moe: {
    arch: "glm4moe",
    keys: {
      ...heads(4, 2),
      ...experts,
      "rope.dimension_count": u32(8),
      expert_shared_count: u32(1),
      expert_gating_func: u32(2),
      expert_weights_norm: true,
      expert_weights_scale: f32(1.5),
      leading_dense_block_count: u32(1),
    },
    shapes: { output: [DIM, VOCAB] },
    layers: each(2, (i) => ({
      ...norms("attn_norm", "post_attention_norm"),
      ...biases(attention(), "attn_q", "attn_k", "attn_v"),
      ...headNorms(),
      ...(i === 0 ? mlp() : { ...moe(), "exp_probs_b.bias": [EXPERTS], ...mlp(EXPERT_FFN, "_shexp") }),
    })),
  },
  qwen2moe: {
    arch: "qwen2moe",
    keys: { ...heads(4, 2), ...experts, expert_shared_feed_forward_length: u32(48) },
    shapes: { output: [DIM, VOCAB] },
    layers: each(2, () => ({
      ...norms("attn_norm", "ffn_norm"),
      ...biases(attention(), "attn_q", "attn_k", "attn_v"),
      ...moe(),
      ffn_gate_inp_shexp: [DIM],
      ...mlp(48, "_shexp"),
    })),
  },
  phi2: {
    arch: "phi2",
    keys: { ...heads(4, 4), "rope.dimension_count": u32(8), "attention.layer_norm_epsilon": f32(1e-5) },
    shapes: { "output_norm.bias": [DIM], output: [DIM, VOCAB], "output.bias": [VOCAB] },
    layers: each(2, () => ({
      ...norms("attn_norm", "attn_norm.bias"),
      ...biases(attention(4, 4), "attn_q", "attn_k", "attn_v", "attn_output"),
      ...plainMlp(),
    })),
  },
  starcoder2: {
    arch: "starcoder2",
    keys: { ...heads(4, 2), "attention.layer_norm_epsilon": f32(1e-5) },
    shapes: { "output_norm.bias": [DIM], output: [DIM, VOCAB] },
    layers: each(2, () => ({
      ...norms("attn_norm", "attn_norm.bias", "ffn_norm", "ffn_norm.bias"),
      ...biases(attention(), "attn_q", "attn_k", "attn_v", "attn_output"),
      ...plainMlp(),
    })),
  },
  cohere2: {
    arch: "cohere2",
    keys: {
      ...heads(4, 2),
      "attention.layer_norm_epsilon": f32(1e-5),
      "attention.sliding_window": u32(6),
      logit_scale: f32(0.25),
    },
    layers: each(4, () => ({ ...norms("attn_norm"), ...attention(), ...mlp() })),
  },
};

/** Keys that every family has, before its own. */
const common = (layers: number, dim: number): Readonly<Record<string, WriteValue>> => ({
  context_length: u32(512),
  embedding_length: u32(dim),
  block_count: u32(layers),
  feed_forward_length: u32(FFN),
  "attention.layer_norm_rms_epsilon": f32(1e-5),
});

/** @param vocabulary metadata of a tokenizer */
type Keys = Readonly<Record<string, WriteValue>>;

export const makeFamily = (name: string, vocabulary: Keys): WriteModel =>
  buildFamily(name, families[name]!, vocabulary);

/** @param name seeds the weights */
export function buildFamily(name: string, family: Family, vocabulary: Keys): WriteModel {
  const { arch, keys, shapes = {}, outputNorm = "output_norm", dim = DIM, layers } = family;
  const rng = makeRng(Bun.hash.crc32(name));
  const tensors: WriteTensor[] = [];
  const add = (tensor: string, shape: readonly number[]): void => {
    const count = shape.reduce((a, b) => a * b, 1);
    if (tensor.endsWith("tid2eid")) {
      const ids = Int32Array.from({ length: count }, (_, i) => (i * 5 + (i >> 3)) % EXPERTS);
      tensors.push({ name: fullName(tensor), shape, quant: i32, data: new Uint8Array(ids.buffer) });
      return;
    }
    const draw = valueOf(tensor, shape);
    const values = gaussians(count, rng, draw);
    tensors.push({ name: fullName(tensor), shape, quant: quants.f32, data: new Uint8Array(values.buffer) });
  };
  add("token_embd", [dim, VOCAB]);
  add(outputNorm, [dim]);
  for (const [tensor, shape] of Object.entries(shapes)) add(tensor, shape);
  for (const [layer, own] of layers.entries()) {
    for (const [tensor, shape] of Object.entries(own)) add(`blk.${layer}.${tensor}`, shape);
  }
  const metadata: Record<string, WriteValue> = { "general.architecture": arch, ...vocabulary };
  for (const [key, value] of Object.entries({ ...common(layers.length, dim), ...keys })) {
    metadata[key.startsWith("xielu.") ? key : `${arch}.${key}`] = value; // the only keys without a family's name
  }
  return { metadata, tensors };
}

/** `NAME.weight`, except biases, and names that end in a dot, which are used without it. */
function fullName(name: string): string {
  if (name.endsWith(".")) return name.slice(0, -1);
  return name.endsWith(".bias") ? name : `${name}.weight`;
}

/** Norms and factors near 1, decays below 0, the rest scaled so that activations keep their size. */
function valueOf(name: string, shape: readonly number[]): (normal: number) => number {
  if (name.endsWith("ssm_a.")) return (normal) => -0.2 - Math.abs(normal);
  if (/time_mix_(decay|w0)$/.test(name)) return (normal) => 0.5 * normal - 0.5;
  if (/_lerp_|time_mix_([av]0|first|[kr]_[ka])$/.test(name)) return (normal) => 0.5 + 0.3 * normal;
  if (/(norm(_\d)?|time_mix_ln)$|scale$|rope_freqs$|ssm_d\.$/.test(name)) return (normal) => 1 + 0.2 * normal;
  if (/\.bias$|sinks$/.test(name)) return (normal) => 0.3 * normal;
  if (name === "token_embd") return (normal) => normal;
  const size = (/attn_(q|k|v|qkv)$/.test(name) ? 1.6 : 1) / Math.sqrt(shape[0]!);
  return (normal) => size * normal;
}

/** Families with recurrences or short convolutions in place of attention. */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type TensorTable } from "../architecture.ts";
import { layersOf, nameOf, type Config } from "../config.ts";
import { decoderMetadata, llamaTable } from "../decoder.ts";

/** The taps of each channel, without the dimension of one between them. */
export const taps = (shape: readonly number[]) => ({
  shape: shape.length > 2 ? [shape[0] ?? 0, shape.at(-1) ?? 0] : shape,
});
/** Decays are stored as logarithms of rates. */
export const decay = (weight: number): number => -Math.exp(weight);

function ssmMetadata(config: Config): Record<string, WriteValue> {
  const dim = config.count(nameOf(config, "hidden_size", "d_model"));
  return {
    context_length: u32(2 ** 20), // unlimited; converters write this
    embedding_length: u32(dim),
    block_count: u32(layersOf(config)),
    feed_forward_length: u32(0),
    "attention.head_count": u32(0),
    "attention.layer_norm_rms_epsilon": f32(config.number(nameOf(config, "layer_norm_epsilon", "rms_norm_eps"), 1e-5)),
    "ssm.conv_kernel": u32(config.count(nameOf(config, "conv_kernel", "d_conv"), { fallback: 4 })),
    "ssm.state_size": u32(config.count(nameOf(config, "state_size", "d_state"))),
  };
}

const SSM: TensorTable = {
  embeddings: { to: "token_embd" },
  norm_f: { to: "output_norm" },
  lm_head: { to: "output", optional: true },
  "layers.*.norm": { to: "blk.*.attn_norm" },
  "layers.*.mixer.in_proj": { to: "blk.*.ssm_in" },
  "layers.*.mixer.conv1d": { to: "blk.*.ssm_conv1d", rows: taps, precise: true },
  "layers.*.mixer.out_proj": { to: "blk.*.ssm_out" },
};

const mamba1 = (more: Record<string, WriteValue> = {}): Architecture => ({
  arch: "mamba",
  activations: ["silu"],
  metadata(config) {
    const dim = config.count(nameOf(config, "hidden_size", "d_model"));
    return {
      ...ssmMetadata(config),
      "ssm.inner_size": u32(config.findCount("intermediate_size") ?? 2 * dim),
      "ssm.time_step_rank": u32(config.findCount("time_step_rank") ?? Math.ceil(dim / 16)),
      ...more,
    };
  },
  tensors: () => ({
    ...SSM,
    "layers.*.mixer.x_proj": { to: "blk.*.ssm_x" },
    "layers.*.mixer.dt_proj": { to: "blk.*.ssm_dt" },
    "layers.*.mixer.A_log": { to: "blk.*.ssm_a", value: decay, precise: true },
    "layers.*.mixer.D": { to: "blk.*.ssm_d" },
  }),
});

export const mamba = mamba1();
/** Falcon Mamba norms time steps, B and C. */
export const falconMamba = mamba1({ "ssm.dt_b_c_rms": true });

export const mamba2: Architecture = {
  arch: "mamba2",
  activations: ["silu"],
  metadata(config) {
    const nHeads = config.count("num_heads");
    return {
      ...ssmMetadata(config),
      "ssm.inner_size": u32(nHeads * config.count("head_dim")),
      "ssm.time_step_rank": u32(nHeads),
      "ssm.group_count": u32(config.count("n_groups", { fallback: 1 })),
    };
  },
  tensors(config) {
    return { ...SSM, ...mamba2Parts("layers.*.mixer", config.count("n_groups", { fallback: 1 })) };
  },
};

/** Weights of the heads of Mamba 2, and the norm of its groups. */
export function mamba2Parts(at: string, groups: number): TensorTable {
  const column = ([heads = 0]: readonly number[]) => ({ shape: [heads, 1] });
  return {
    [`${at}.dt_bias`]: { to: "blk.*.ssm_dt.bias" },
    [`${at}.A_log`]: { to: "blk.*.ssm_a", value: decay, precise: true, rows: column },
    [`${at}.D`]: { to: "blk.*.ssm_d", precise: true, rows: column },
    [`${at}.norm`]: { to: "blk.*.ssm_norm", precise: true, rows: ([dim = 0]) => ({ shape: [groups, dim / groups] }) },
  };
}

/** LFM 2: short convolutions between layers of attention. */
export const lfm2: Architecture = {
  arch: "lfm2",
  metadata: lfm2Metadata,
  tensors: () => ({
    ...LFM2,
    "layers.*.feed_forward.w1": { to: "blk.*.ffn_gate" },
    "layers.*.feed_forward.w3": { to: "blk.*.ffn_up" },
    "layers.*.feed_forward.w2": { to: "blk.*.ffn_down" },
  }),
};

/** LFM 2 with experts after its first layers. */
export const lfm2moe: Architecture = {
  arch: "lfm2moe",
  metadata: (config) => ({
    ...lfm2Metadata(config),
    expert_count: u32(config.count("num_experts")),
    expert_used_count: u32(config.count("num_experts_per_tok")),
    expert_feed_forward_length: u32(config.count("moe_intermediate_size")),
    leading_dense_block_count: u32(config.count("num_dense_layers", { fallback: 0, min: 0 })),
    expert_gating_func: u32(2),
  }),
  tensors: () => ({
    ...LFM2,
    "layers.*.feed_forward.w1": { to: "blk.*.ffn_gate", optional: "layers" },
    "layers.*.feed_forward.w3": { to: "blk.*.ffn_up", optional: "layers" },
    "layers.*.feed_forward.w2": { to: "blk.*.ffn_down", optional: "layers" },
    "layers.*.feed_forward.gate": { to: "blk.*.ffn_gate_inp", optional: "layers" },
    "layers.*.feed_forward.expert_bias": { to: "blk.*.exp_probs_b.bias", optional: "layers" },
    "layers.*.feed_forward.experts.#.w1": { to: "blk.*.ffn_gate_exps", optional: "layers" },
    "layers.*.feed_forward.experts.#.w3": { to: "blk.*.ffn_up_exps", optional: "layers" },
    "layers.*.feed_forward.experts.#.w2": { to: "blk.*.ffn_down_exps", optional: "layers" },
  }),
};

const { embed_tokens, "layers.*.self_attn.v_proj": _, ...ATTENTION } = llamaTable();
const LFM2: TensorTable = {
  embed_tokens: embed_tokens!, // the table of Llama has it
  embedding_norm: { to: "token_embd_norm" },
  lm_head: ATTENTION["lm_head"]!, // the table of Llama has it
  "layers.*.operator_norm": { to: "blk.*.attn_norm" },
  "layers.*.ffn_norm": { to: "blk.*.ffn_norm" },
  "layers.*.self_attn.q_proj": { to: "blk.*.attn_q", optional: "layers" },
  "layers.*.self_attn.k_proj": { to: "blk.*.attn_k", optional: "layers" },
  "layers.*.self_attn.v_proj": { to: "blk.*.attn_v", optional: "layers" },
  "layers.*.self_attn.out_proj": { to: "blk.*.attn_output", optional: "layers" },
  "layers.*.self_attn.q_layernorm": { to: "blk.*.attn_q_norm", optional: "layers" },
  "layers.*.self_attn.k_layernorm": { to: "blk.*.attn_k_norm", optional: "layers" },
  "layers.*.conv.in_proj": { to: "blk.*.shortconv.in_proj", optional: "layers" },
  "layers.*.conv.conv": { to: "blk.*.shortconv.conv", rows: taps, precise: true, optional: "layers" },
  "layers.*.conv.out_proj": { to: "blk.*.shortconv.out_proj", optional: "layers" },
};

function lfm2Metadata(config: Config): Record<string, WriteValue> {
  const types = config.find("layer_types");
  const nLayers = layersOf(config);
  const isList = Array.isArray(types) && types.length === nLayers;
  if (!isList) throw config.wrong("layer_types", `a list of ${nLayers}`);
  const heads = config.count("num_key_value_heads");
  return {
    ...decoderMetadata(config, { eps: config.number("norm_eps", 1e-5), ropeBase: 1e6 }),
    "attention.head_count_kv": Int32Array.from(types, (type) => (type === "full_attention" ? heads : 0)),
    "shortconv.l_cache": u32(config.count("conv_L_cache", { fallback: 3 })),
  };
}

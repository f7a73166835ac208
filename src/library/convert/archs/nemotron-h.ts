/** Nemotron H and 3: each layer is Mamba 2, attention without positions, an MLP without a gate, or experts. */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type TensorRule, type TensorTable } from "../architecture.ts";
import type { Config } from "../config.ts";
import { checkActivation } from "../decoder.ts";
import { mamba2Parts, taps } from "./recurrent.ts";

type Kind = "mamba" | "attention" | "mlp" | "moe";

/** Spellings of the kinds: letters of a pattern, and words of a list. */
const KINDS: Readonly<Record<string, Kind>> = {
  M: "mamba",
  "*": "attention",
  "-": "mlp",
  E: "moe",
  mamba: "mamba",
  linear_attention: "mamba",
  attention: "attention",
  full_attention: "attention",
  mlp: "mlp",
  moe: "moe",
};

const LAYERS_MAX = 512;

function kindsOf(config: Config): Kind[] {
  const key = config.find("layers_block_type") === undefined ? "hybrid_override_pattern" : "layers_block_type";
  const listed = config.find(key);
  const names: unknown[] = typeof listed === "string" ? [...listed] : Array.isArray(listed) ? listed : [];
  const kinds = names.map((name) => (Object.hasOwn(KINDS, String(name)) ? KINDS[String(name)] : undefined));
  const isKnown = kinds.length > 0 && kinds.length <= LAYERS_MAX && kinds.every((kind) => kind !== undefined);
  if (!isKnown) throw config.wrong(key, "a known kind for each layer");
  return kinds as Kind[]; // each was checked
}

function metadata(config: Config, own: "mlp" | "moe"): Record<string, WriteValue> {
  checkActivation(config, ["relu2"], "mlp_hidden_act");
  const kinds = kindsOf(config);
  const other = own === "mlp" ? "moe" : "mlp";
  if (kinds.includes(other)) throw config.wrong("layers_block_type", `no '${other}' beside '${own}'`);
  const width = own === "mlp" ? "intermediate_size" : "moe_intermediate_size";
  const per = (kind: Kind, value: number): Uint32Array =>
    Uint32Array.from(kinds, (each) => (each === kind ? value : 0));
  const [headDim, nHeads] = [config.count("head_dim", { fallback: 128 }), config.count("mamba_num_heads")];
  return {
    context_length: u32(config.count("max_position_embeddings")),
    embedding_length: u32(config.count("hidden_size")),
    block_count: u32(kinds.length),
    feed_forward_length: per(own, config.count(width)),
    "attention.head_count": u32(config.count("num_attention_heads")),
    "attention.head_count_kv": per("attention", config.count("num_key_value_heads")),
    "attention.key_length": u32(headDim),
    "attention.value_length": u32(headDim),
    "attention.layer_norm_rms_epsilon": f32(config.number("layer_norm_epsilon", 1e-5)),
    "ssm.conv_kernel": u32(config.count("conv_kernel", { fallback: 4 })),
    "ssm.state_size": u32(config.count("ssm_state_size")),
    "ssm.group_count": u32(config.count("n_groups")),
    "ssm.time_step_rank": u32(nHeads),
    "ssm.inner_size": u32(nHeads * config.count("mamba_head_dim")),
    ...(own === "moe" ? expertKeys(config) : {}),
  };
}

function expertKeys(config: Config): Record<string, WriteValue> {
  const latent = config.findCount("moe_latent_size");
  const groups = config.findCount("n_group") ?? 1;
  return {
    expert_count: u32(config.count("n_routed_experts")),
    expert_used_count: u32(config.count("num_experts_per_tok")),
    expert_feed_forward_length: u32(config.count("moe_intermediate_size")),
    expert_shared_feed_forward_length: u32(config.count("moe_shared_expert_intermediate_size")),
    expert_shared_count: u32(config.count("n_shared_experts", { fallback: 1 })),
    expert_weights_norm: config.flag("norm_topk_prob", true),
    expert_weights_scale: f32(config.number("routed_scaling_factor", 1)),
    expert_gating_func: u32(2),
    expert_group_count: u32(groups),
    expert_group_used_count: u32(config.findCount("topk_group") ?? groups),
    ...(latent === undefined ? {} : { moe_latent_size: u32(latent) }),
  };
}

const MIXER = "layers.*.mixer";

/** Blocks of each kind exist in some layers only. */
const inSomeLayers = (table: Readonly<Record<string, TensorRule>>): TensorTable =>
  Object.fromEntries(Object.entries(table).map(([name, rule]) => [name, { ...rule, optional: "layers" as const }]));

const tensors = (config: Config): TensorTable => ({
  embeddings: { to: "token_embd" },
  norm_f: { to: "output_norm" },
  lm_head: { to: "output", optional: true },
  "layers.*.norm": { to: "blk.*.attn_norm" },
  ...inSomeLayers({
    [`${MIXER}.in_proj`]: { to: "blk.*.ssm_in" },
    [`${MIXER}.conv1d`]: { to: "blk.*.ssm_conv1d", rows: taps, precise: true },
    [`${MIXER}.out_proj`]: { to: "blk.*.ssm_out" },
    ...mamba2Parts(MIXER, config.count("n_groups")),
    [`${MIXER}.q_proj`]: { to: "blk.*.attn_q" },
    [`${MIXER}.k_proj`]: { to: "blk.*.attn_k" },
    [`${MIXER}.v_proj`]: { to: "blk.*.attn_v" },
    [`${MIXER}.o_proj`]: { to: "blk.*.attn_output" },
    [`${MIXER}.up_proj`]: { to: "blk.*.ffn_up" },
    [`${MIXER}.down_proj`]: { to: "blk.*.ffn_down" },
    [`${MIXER}.gate`]: { to: "blk.*.ffn_gate_inp" },
    [`${MIXER}.gate.e_score_correction_bias`]: { to: "blk.*.exp_probs_b.bias" },
    [`${MIXER}.experts.#.up_proj`]: { to: "blk.*.ffn_up_exps" },
    [`${MIXER}.experts.#.down_proj`]: { to: "blk.*.ffn_down_exps" },
    [`${MIXER}.shared_experts.up_proj`]: { to: "blk.*.ffn_up_shexp" },
    [`${MIXER}.shared_experts.down_proj`]: { to: "blk.*.ffn_down_shexp" },
    [`${MIXER}.fc1_latent_proj`]: { to: "blk.*.ffn_latent_down" },
    [`${MIXER}.fc2_latent_proj`]: { to: "blk.*.ffn_latent_up" },
  }),
});

export const nemotronH: Architecture = {
  arch: "nemotron_h",
  metadata: (config) => metadata(config, "mlp"),
  tensors,
  unused: /^mtp\./,
};

export const nemotronHMoe: Architecture = {
  arch: "nemotron_h_moe",
  metadata: (config) => metadata(config, "moe"),
  tensors,
  unused: /^mtp\./,
};

/** True for a model of this family with experts. */
export const nemotronHasExperts = (config: Config): boolean => kindsOf(config).includes("moe");

/** Decoders with experts, whose matrices a folder stores one by one and a GGUF stacked. */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type TensorRule, type TensorTable } from "../architecture.ts";
import { nameOf, type Config } from "../config.ts";
import { decoderMetadata, headNorms, headsOf, layerNorms, llamaTable, rotaryPart, windowKeys } from "../decoder.ts";
import { graniteFactors, HUNYUAN_NORMS } from "./sequential.ts";

/** Routing scores, as `expert_gating_func` numbers them. */
const SIGMOID = u32(2);

/** The matrices of experts and their router. If some layers are dense, no kind of MLP is in all layers. */
function expertTable(
  at: string,
  names: readonly [gate: string, up: string, down: string],
  router: string,
): TensorTable {
  const [gate, up, down] = names.map((name) => `${at}.experts.#.${name}`) as [string, string, string];
  return {
    [router]: { to: "blk.*.ffn_gate_inp", optional: "layers" },
    [gate]: { to: "blk.*.ffn_gate_exps", optional: "layers" },
    [up]: { to: "blk.*.ffn_up_exps", optional: "layers" },
    [down]: { to: "blk.*.ffn_down_exps", optional: "layers" },
  };
}

const PROJECTIONS = ["gate_proj", "up_proj", "down_proj"] as const;
const BY_NUMBER = ["w1", "w3", "w2"] as const;
export const inMlp = (router = "layers.*.mlp.gate"): TensorTable => expertTable("layers.*.mlp", PROJECTIONS, router);
const inSparseBlock = (): TensorTable =>
  expertTable("layers.*.block_sparse_moe", BY_NUMBER, "layers.*.block_sparse_moe.gate");

/** Experts that a folder stores stacked: gate and up in one, (experts, 2 · width, dim), and down. */
export const stackedExperts = (at: string): TensorTable => ({
  [`${at}.gate_up_proj`]: [
    { to: "blk.*.ffn_gate_exps.weight", rows: halfOf(false), optional: "layers" },
    { to: "blk.*.ffn_up_exps.weight", rows: halfOf(true), optional: "layers" },
  ],
  [`${at}.down_proj`]: { to: "blk.*.ffn_down_exps.weight", optional: "layers" },
});

/** An expert that every row passes. */
export function sharedExpert(at: string): TensorTable {
  const [gate, up, down] = PROJECTIONS;
  return {
    [`${at}.${gate}`]: { to: "blk.*.ffn_gate_shexp", optional: "layers" },
    [`${at}.${up}`]: { to: "blk.*.ffn_up_shexp", optional: "layers" },
    [`${at}.${down}`]: { to: "blk.*.ffn_down_shexp", optional: "layers" },
  };
}

/** Llama's weights, if some layers have experts and others an MLP. */
export function mixedTable(table = llamaTable()): TensorTable {
  const entries = Object.entries(table).map(([name, rule]) =>
    name.includes(".mlp.")
      ? ([name, { ...(rule as TensorRule), optional: "layers" }] as const)
      : ([name, rule] as const),
  );
  return Object.fromEntries(entries);
}

/** Llama's weights without its MLP. */
export const bareTable = (table = llamaTable()): TensorTable =>
  Object.fromEntries(Object.entries(table).filter(([name]) => !name.includes(".mlp.")));

/** Number of experts, how many a row uses, and their width. */
export function expertMetadata(config: Config, width = "moe_intermediate_size"): Record<string, WriteValue> {
  const count = nameOf(config, "num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts");
  const used = nameOf(config, "num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k");
  const ffnDim = firstOf(config, nameOf(config, width, "intermediate_size"));
  return {
    expert_count: u32(config.count(count)),
    expert_used_count: u32(firstOf(config, used)),
    expert_feed_forward_length: u32(ffnDim),
  };
}

/** Some configurations list a size per layer, which is the same for layers of one kind. */
function firstOf(config: Config, key: string): number {
  const listed = config.find(key);
  if (!Array.isArray(listed)) return config.count(key);
  const [first] = config.findNumbers(key)!; // an array, as checked above
  if (first === undefined || listed.some((each) => each !== first))
    throw config.wrong(key, "the same number in all layers");
  return first;
}

/** DeepSeek's routing: sigmoid scores with a bias, from the best groups, after some dense layers. */
export function deepseekRouting(config: Config): Record<string, WriteValue> {
  const groups = config.findCount("n_group") ?? 1;
  return {
    leading_dense_block_count: u32(config.count("first_k_dense_replace", { fallback: 0, min: 0 })),
    expert_shared_count: u32(
      config.count(nameOf(config, "n_shared_experts", "num_shared_experts"), { fallback: 0, min: 0 }),
    ),
    expert_weights_scale: f32(config.number("routed_scaling_factor", 1)),
    expert_weights_norm: config.flag("norm_topk_prob", true),
    expert_group_count: u32(groups),
    expert_group_used_count: u32(config.findCount("topk_group") ?? groups),
  };
}

export const CORRECTION: TensorTable = {
  "layers.*.mlp.gate.e_score_correction_bias": { to: "blk.*.exp_probs_b.bias", optional: "layers" },
};

/** Mixtral is `llama` with experts. */
export const mixtral: Architecture = {
  arch: "llama",
  activations: ["silu"],
  metadata: (config) => ({
    ...decoderMetadata(config, { eps: 1e-5 }),
    "rope.dimension_count": u32(headsOf(config).headDim),
    ...expertMetadata(config, "intermediate_size"),
  }),
  tensors: (config) => ({ ...bareTable(llamaTable({ heads: headsOf(config) })), ...inSparseBlock() }),
};

export const qwen2moe: Architecture = {
  arch: "qwen2moe",
  activations: ["silu"],
  metadata(config) {
    if (config.flag("norm_topk_prob", false)) throw config.wrong("norm_topk_prob", "false");
    return {
      ...decoderMetadata(config, { ctxLen: 32_768 }),
      ...expertMetadata(config),
      expert_shared_feed_forward_length: u32(config.count("shared_expert_intermediate_size")),
    };
  },
  tensors: () => ({
    ...bareTable(),
    ...inMlp(),
    ...sharedExpert("layers.*.mlp.shared_expert"),
    "layers.*.mlp.shared_expert_gate": { to: "blk.*.ffn_gate_inp_shexp" },
  }),
};

export const qwen3moe: Architecture = {
  arch: "qwen3moe",
  activations: ["silu"],
  metadata(config) {
    if (!config.flag("norm_topk_prob", false)) throw config.wrong("norm_topk_prob", "true");
    return { ...decoderMetadata(config, { headDim: 128, ctxLen: 32_768 }), ...expertMetadata(config) };
  },
  tensors: () => ({ ...bareTable(), ...headNorms(), ...inMlp() }),
};

export const olmoe: Architecture = {
  arch: "olmoe",
  activations: ["silu"],
  metadata(config) {
    if (config.flag("norm_topk_prob", false)) throw config.wrong("norm_topk_prob", "false");
    return { ...decoderMetadata(config, { eps: 1e-5 }), ...expertMetadata(config, "intermediate_size") };
  },
  tensors: () => ({ ...bareTable(), ...headNorms(), ...inMlp() }),
};

export const phimoe: Architecture = {
  arch: "phimoe",
  activations: ["silu"],
  metadata: (config) => ({
    ...layerNorms(decoderMetadata(config), config.number("rms_norm_eps", 1e-5)),
    ...expertMetadata(config, "intermediate_size"),
  }),
  tensors: () => ({ ...bareTable(), ...inSparseBlock() }),
};

/** Gate or up of stacked matrices that contain both, in this order. */
export const halfOf =
  (second: boolean) =>
  ([experts = 0, rows = 0, dim = 0]: readonly number[]) => {
    const half = rows / 2;
    const start = second ? half : 0;
    const order = Array.from({ length: experts * half }, (_, i) => Math.floor(i / half) * rows + start + (i % half));
    return { shape: [experts, half, dim], order };
  };

/** Granite 3 with experts, gate and up in one stack. */
export const graniteMoe: Architecture = {
  arch: "granitemoe",
  activations: ["silu"],
  metadata: (config) => ({
    ...decoderMetadata(config),
    ...graniteFactors(config),
    ...expertMetadata(config, "intermediate_size"),
  }),
  tensors: (config) => ({
    ...bareTable(llamaTable({ heads: headsOf(config) })),
    "layers.*.block_sparse_moe.router.layer": { to: "blk.*.ffn_gate_inp" },
    "layers.*.block_sparse_moe.input_linear": [
      { to: "blk.*.ffn_gate_exps", rows: halfOf(false) },
      { to: "blk.*.ffn_up_exps", rows: halfOf(true) },
    ],
    "layers.*.block_sparse_moe.output_linear": { to: "blk.*.ffn_down_exps" },
  }),
};

/** GLM 4.5 and later; its draft layer is left out. */
export const glm4moe: Architecture = {
  arch: "glm4moe",
  activations: ["silu"],
  metadata: (config) => ({
    ...decoderMetadata(config, { eps: 1e-5 }),
    ...rotaryPart(config, { part: 0.5 }),
    ...expertMetadata(config),
    ...deepseekRouting(config),
    expert_gating_func: SIGMOID,
  }),
  tensors: (config) => ({
    ...mixedTable(),
    ...(config.flag("use_qk_norm", false) ? headNorms() : {}),
    ...inMlp(),
    ...CORRECTION,
    ...sharedExpert("layers.*.mlp.shared_experts"),
    "layers.*.post_attention_layernorm": { to: "blk.*.post_attention_norm" },
  }),
};

/** Solar Open: GLM 4.5 with RoPE on whole heads. */
export const solarOpen: Architecture = {
  ...glm4moe,
  metadata: (config) => ({ ...glm4moe.metadata(config), ...rotaryPart(config, { part: 1 }) }),
};

/** Hunyuan 3: DeepSeek's experts under other names, and norms of query and key. */
export const hyV3: Architecture = {
  arch: "hy_v3",
  activations: ["silu"],
  metadata: (config) => ({
    ...decoderMetadata(config, { eps: 1e-5 }),
    ...expertMetadata(config),
    ...deepseekRouting(config),
    expert_weights_scale: f32(config.number("router_scaling_factor", 1)),
    expert_gating_func: SIGMOID,
  }),
  tensors: () => ({
    ...mixedTable(),
    ...headNorms(),
    ...inMlp("layers.*.mlp.router.gate"),
    "layers.*.mlp.expert_bias": { to: "blk.*.exp_probs_b.bias", optional: "layers" },
    ...sharedExpert("layers.*.mlp.shared_mlp"),
  }),
};

export const dots1: Architecture = {
  arch: "dots1",
  activations: ["silu"],
  metadata: (config) => ({
    ...decoderMetadata(config),
    ...expertMetadata(config),
    ...deepseekRouting(config),
    expert_gating_func: SIGMOID,
  }),
  tensors: () => ({
    ...mixedTable(),
    ...headNorms(),
    ...inMlp(),
    ...CORRECTION,
    ...sharedExpert("layers.*.mlp.shared_experts"),
  }),
};

/** K-EXAONE: windows in three of four layers. */
export const exaoneMoe: Architecture = {
  ...dots1,
  arch: "exaone-moe",
  metadata: (config) => ({ ...dots1.metadata(config), ...windowKeys(config, 4) }),
  tensors: (config) => ({
    ...dots1.tensors(config),
    "layers.*.mlp.e_score_correction_bias": { to: "blk.*.exp_probs_b.bias", optional: "layers" },
  }),
};

export const ernie45moe: Architecture = {
  arch: "ernie4_5-moe",
  activations: ["silu"],
  metadata: (config) => ({
    ...decoderMetadata(config, { eps: 1e-5 }),
    ...expertMetadata(config),
    expert_shared_feed_forward_length: u32(
      config.count("moe_intermediate_size") * config.count("moe_num_shared_experts", { fallback: 0, min: 0 }),
    ),
    leading_dense_block_count: u32(config.count("moe_layer_start_index", { fallback: 1, min: 0 })),
    interleave_moe_layer_step: u32(config.count("moe_layer_interval", { fallback: 1 })),
  }),
  tensors: () => ({
    ...mixedTable(),
    ...inMlp(),
    ...sharedExpert("layers.*.mlp.shared_experts"),
    "layers.*.mlp.moe_statics.e_score_correction_bias": {
      to: "blk.*.exp_probs_b.bias",
      rows: (shape) => ({ shape: [shape.at(-1) ?? 0] }),
      optional: "layers",
    },
  }),
};

export const hunyuanMoe: Architecture = {
  arch: "hunyuan-moe",
  activations: ["silu"],
  metadata(config) {
    const experts = expertMetadata(config, "moe_intermediate_size");
    return {
      ...decoderMetadata(config, { eps: 1e-5 }),
      ...experts,
      expert_shared_feed_forward_length: u32(config.count("intermediate_size")),
    };
  },
  tensors: () => ({
    ...bareTable(),
    ...HUNYUAN_NORMS,
    ...inMlp("layers.*.mlp.gate.wg"),
    ...sharedExpert("layers.*.mlp.shared_mlp"),
  }),
};

export const minimaxM2: Architecture = {
  arch: "minimax-m2",
  activations: ["silu"],
  metadata: (config) => ({
    ...decoderMetadata(config),
    ...rotaryPart(config, { part: 1 }),
    ...expertMetadata(config, "intermediate_size"),
    expert_gating_func: SIGMOID,
  }),
  tensors: () => ({
    ...bareTable(),
    ...headNorms(),
    ...inSparseBlock(),
    "layers.*.block_sparse_moe.e_score_correction_bias": { to: "blk.*.exp_probs_b.bias" },
  }),
};

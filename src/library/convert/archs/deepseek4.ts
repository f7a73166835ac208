/** DeepSeek V4 under the names of its published files: weights in 8 bits, experts in MXFP4. */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type TensorRule, type TensorTable } from "../architecture.ts";
import { layersOf, type Config } from "../config.ts";
import { checkActivation } from "../decoder.ts";
import { yarnMetadata } from "../rope.ts";
import { expertMetadata } from "./experts.ts";
import { indexerKeys } from "./indexed.ts";

/** Kinds of layers, and the numbers of positions in their blocks. */
const RATIOS: Readonly<Record<string, number>> = {
  sliding_attention: 0,
  compressed_sparse_attention: 4,
  heavily_compressed_attention: 128,
};

export const deepseek4: Architecture = {
  arch: "deepseek4",
  metadata,
  tensors: (config) => ({
    ...either(["embed", "embed_tokens"], { to: "token_embd" }),
    ...either(["head", "lm_head"], { to: "output" }),
    norm: { to: "output_norm" },
    ...either(["hc_head_fn", "hc_head.hc_fn"], { to: "output_hc_fn.weight", precise: true }),
    ...either(["hc_head_base", "hc_head.hc_base"], { to: "output_hc_base.weight" }),
    ...either(["hc_head_scale", "hc_head.hc_scale"], { to: "output_hc_scale.weight" }),
    ...inLayers({
      attn_norm: { to: "attn_norm" },
      "attn.attn_sink": { to: "attn_sinks.weight" },
      "attn.wq_a": { to: "attn_q_a" },
      "attn.q_norm": { to: "attn_q_a_norm" },
      "attn.wq_b": { to: "attn_q_b" },
      "attn.wkv": { to: "attn_kv" },
      ...either(["attn.kv_norm", "attn.norm"], { to: "attn_kv_a_norm" }),
      "attn.wo_a": { to: "attn_output_a" },
      "attn.wo_b": { to: "attn_output_b" },
      ...compressor("attn.compressor", "attn_compressor"),
      ...compressor("attn.indexer.compressor", "indexer_compressor"),
      "attn.indexer.wq_b": { to: "indexer.attn_q_b", optional: "layers" },
      "attn.indexer.weights_proj": { to: "indexer.proj", optional: "layers" },
      ...connections("hc_attn"),
      ...connections("hc_ffn"),
      ffn_norm: { to: "ffn_norm" },
      "ffn.gate": { to: "ffn_gate_inp" },
      "ffn.gate.bias": { to: "exp_probs_b.bias", optional: "layers" },
      "ffn.gate.tid2eid": { to: "ffn_gate_tid2eid.weight", isTable: true, optional: "layers" },
      ...experts("ffn.experts.#", "exps"),
      ...(config.count("n_shared_experts", { fallback: 1, min: 0 }) > 0 && experts("ffn.shared_experts", "shexp")),
    }),
  }),
  unused: /^mtp\./, // layers that draft
};

/** One rule for several names. */
const either = (names: readonly string[], rule: TensorRule): Record<string, TensorRule> =>
  Object.fromEntries(names.map((name) => [name, rule]));

const inLayers = (table: Readonly<Record<string, TensorRule>>): TensorTable =>
  Object.fromEntries(
    Object.entries(table).map(([name, rule]) => [`layers.*.${name}`, { ...rule, to: `blk.*.${rule.to}` }]),
  );

const compressor = (from: string, to: string): Record<string, TensorRule> => ({
  [`${from}.wkv`]: { to: `${to}_kv`, optional: "layers" },
  [`${from}.wgate`]: { to: `${to}_gate`, optional: "layers" },
  [`${from}.ape`]: { to: `${to}_ape.weight`, precise: true, optional: "layers" },
  [`${from}.norm`]: { to: `${to}_norm`, optional: "layers" },
});

const connections = (name: string): Record<string, TensorRule> => ({
  [`${name}_fn`]: { to: `${name}_fn.weight`, precise: true },
  [`${name}_base`]: { to: `${name}_base.weight` },
  [`${name}_scale`]: { to: `${name}_scale.weight` },
});

const experts = (from: string, to: string): Record<string, TensorRule> => ({
  [`${from}.w1`]: { to: `ffn_gate_${to}`, isPacked: true },
  [`${from}.w2`]: { to: `ffn_down_${to}`, isPacked: true },
  [`${from}.w3`]: { to: `ffn_up_${to}`, isPacked: true },
});

function metadata(config: Config): Record<string, WriteValue> {
  checkActivation(config, ["silu"]);
  checkActivation(config, ["sqrtsoftplus"], "scoring_func");
  const [nLayers, headDim] = [layersOf(config), config.count("head_dim")];
  const limits = new Float32Array(nLayers).fill(config.number("swiglu_limit", 10));
  return {
    context_length: u32(config.count("max_position_embeddings")),
    embedding_length: u32(config.count("hidden_size")),
    block_count: u32(nLayers),
    "attention.head_count": u32(config.count("num_attention_heads")),
    "attention.head_count_kv": u32(1),
    "attention.key_length": u32(headDim),
    "attention.value_length": u32(headDim),
    "attention.layer_norm_rms_epsilon": f32(config.number("rms_norm_eps", 1e-6)),
    "attention.q_lora_rank": u32(config.count("q_lora_rank")),
    "attention.sliding_window": u32(config.count("sliding_window")),
    "attention.output_group_count": u32(config.count("o_groups")),
    "attention.output_lora_rank": u32(config.count("o_lora_rank")),
    "attention.compress_ratios": Uint32Array.from(ratiosOf(config)),
    ...rotation(config),
    ...indexerKeys(config),
    ...expertMetadata(config),
    expert_shared_count: u32(config.count("n_shared_experts", { fallback: 1, min: 0 })),
    expert_weights_scale: f32(config.number("routed_scaling_factor", 1.5)),
    expert_weights_norm: config.flag("norm_topk_prob", true),
    expert_gating_func: u32(4),
    swiglu_clamp_exp: limits,
    swiglu_clamp_shexp: limits,
    hash_layer_count: u32(hashLayers(config)),
    "hyper_connection.count": u32(config.count("hc_mult", { fallback: 4 })),
    "hyper_connection.sinkhorn_iterations": u32(config.count("hc_sinkhorn_iters", { fallback: 20 })),
    "hyper_connection.epsilon": f32(config.number("hc_eps", 1e-6)),
  };
}

/**
 * Layers without blocks rotate by one base; the other layers by another base, scaled, without a change of magnitude.
 */
function rotation(config: Config): Record<string, WriteValue> {
  const all = config.findPart("rope_parameters");
  const stretched = all?.findPart("compress") ?? config.findPart("rope_scaling") ?? all;
  const { "rope.scaling.attn_factor": _, ...scaling } =
    stretched && (stretched.find("rope_type") ?? stretched.find("type")) === "yarn"
      ? yarnMetadata(config, stretched)
      : {};
  if ((stretched?.findNumber("attention_factor") ?? 1) !== 1) throw stretched!.wrong("attention_factor", "1");
  const bases = { plain: all?.findPart("main"), stretched: all?.findPart("compress") };
  return {
    "rope.dimension_count": u32(rotaryDim(config)),
    "rope.freq_base": f32(bases.plain?.findNumber("rope_theta") ?? config.number("rope_theta", 10_000)),
    "attention.compress_rope_freq_base": f32(
      bases.stretched?.findNumber("rope_theta") ?? config.number("compress_rope_theta", 160_000),
    ),
    ...scaling,
  };
}

const rotaryDim = (config: Config): number =>
  config.findCount("qk_rope_head_dim") ??
  Math.floor(config.count("head_dim") * config.number("partial_rotary_factor", 64 / 512));

/** The positions of a block in each layer, 0 for layers without blocks; published as numbers or as kinds of layers. */
function ratiosOf(config: Config): readonly number[] {
  const nLayers = layersOf(config);
  const [listed, kinds] = [config.findNumbers("compress_ratios"), config.find("layer_types")];
  const rates = config.findPart("compress_rates");
  if (listed && kinds === undefined) {
    const isRatio = (each: number): boolean => Number.isInteger(each) && each >= 0;
    if (listed.length >= nLayers && listed.every(isRatio)) return listed.slice(0, nLayers);
    throw config.wrong("compress_ratios", `a list of ${nLayers} whole numbers`);
  }
  const known = Object.keys(RATIOS);
  const isKind = (kind: unknown): kind is string => known.includes(String(kind));
  if (!Array.isArray(kinds) || kinds.length !== nLayers || !kinds.every(isKind))
    throw config.wrong("layer_types", `a list of ${nLayers} of ${known.join(", ")}`);
  const ratios = kinds.map((kind) => (RATIOS[kind] ? (rates?.findCount(kind) ?? RATIOS[kind]) : 0));
  const isOther = (ratio: number, layer: number): boolean =>
    (kinds[layer] === "compressed_sparse_attention") !== (ratio === RATIOS["compressed_sparse_attention"]);
  if (ratios.some(isOther)) throw config.wrong("compress_rates", "4 for compressed_sparse_attention only");
  return ratios;
}

/** Number of leading layers whose experts depend only on the token. */
function hashLayers(config: Config): number {
  const kinds = config.find("mlp_layer_types");
  if (kinds === undefined) return config.count("num_hash_layers", { min: 0, fallback: 3, max: layersOf(config) });
  const nLayers = layersOf(config);
  if (!Array.isArray(kinds) || kinds.length !== nLayers) throw config.wrong("mlp_layer_types", `a list of ${nLayers}`);
  const count = kinds.lastIndexOf("hash_moe") + 1;
  if (kinds.slice(0, count).some((kind) => kind !== "hash_moe"))
    throw config.wrong("mlp_layer_types", "layers of hash_moe first");
  return count;
}

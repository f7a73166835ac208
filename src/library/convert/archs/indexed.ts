/** Families whose layers choose the positions that they attend to by an indexer. */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type TensorTable } from "../architecture.ts";
import { layersOf, type Config } from "../config.ts";
import { decoderMetadata, headNorms, headsOf, llamaTable, rotaryPart } from "../decoder.ts";
import { deepseek } from "./deepseek.ts";
import { bareTable, CORRECTION, expertMetadata, stackedExperts } from "./experts.ts";
import { halfOfMatrix } from "./hybrid.ts";

const deepseek3 = deepseek(2);

export const indexerKeys = (config: Config): Record<string, WriteValue> => ({
  "attention.indexer.head_count": u32(config.count("index_n_heads")),
  "attention.indexer.key_length": u32(config.count("index_head_dim")),
  "attention.indexer.top_k": u32(config.count("index_topk")),
});

const indexerTable = (optional: false | "layers"): TensorTable => ({
  "layers.*.self_attn.indexer.wq_b": { to: "blk.*.indexer.attn_q_b", optional },
  "layers.*.self_attn.indexer.wk": { to: "blk.*.indexer.attn_k", optional },
  "layers.*.self_attn.indexer.k_norm": { to: "blk.*.indexer.k_norm", optional },
  "layers.*.self_attn.indexer.weights_proj": { to: "blk.*.indexer.proj", optional },
});

/** DeepSeek 3.2: DeepSeek 3 with an indexer in each layer. */
export const deepseek32: Architecture = {
  arch: "deepseek32",
  metadata: (config) => ({ ...deepseek3.metadata(config), ...indexerKeys(config) }),
  tensors: (config) => ({ ...deepseek3.tensors(config), ...indexerTable(false) }),
};

/** The layers that choose by themselves; empty: all. */
export function indexerTypes(config: Config): Record<string, WriteValue> {
  const kinds = config.find("indexer_types");
  const nLayers = layersOf(config);
  if (kinds === undefined) return {};
  if (!Array.isArray(kinds) || kinds.length !== nLayers) throw config.wrong("indexer_types", `a list of ${nLayers}`);
  return { "attention.indexer.types": kinds.map((kind) => kind === "full") };
}

/** GLM 5: some layers use an earlier layer's choice. */
export const glmDsa: Architecture = {
  arch: "glm-dsa",
  metadata: (config) => ({ ...deepseek3.metadata(config), ...indexerKeys(config), ...indexerTypes(config) }),
  tensors: (config) => ({ ...deepseek3.tensors(config), ...indexerTable("layers") }),
};

/** MiniMax M3 as transformers writes it: dense layers without an indexer, then experts with one. Norms are minus 1. */
export const minimaxM3: Architecture = {
  arch: "minimax-m3",
  metadata(config) {
    const fixed = { swiglu_alpha: 1.702, swiglu_limit: 7 };
    for (const [key, value] of Object.entries(fixed)) {
      if (config.number(key, value) !== value) throw config.wrong(key, String(value));
    }
    return {
      ...decoderMetadata(config),
      ...expertMetadata(config, "intermediate_size"),
      feed_forward_length: u32(config.count("dense_intermediate_size")),
      ...rotaryPart(config, { part: config.count("rotary_dim", { fallback: 64 }) / headsOf(config).headDim }),
      leading_dense_block_count: u32(denseLayers(config)),
      expert_shared_count: u32(1),
      expert_gating_func: u32(2),
      expert_weights_norm: true,
      expert_weights_scale: f32(config.number("routed_scaling_factor", 1)),
      "attention.indexer.head_count": u32(config.count("index_n_heads")),
      "attention.indexer.key_length": u32(config.count("index_head_dim")),
      "attention.indexer.top_k": u32(config.count("index_topk_blocks")),
      "attention.indexer.block_size": u32(config.count("index_block_size")),
      "attention.indexer.local_blocks": u32(config.count("index_local_blocks", { min: 0 })),
    };
  },
  tensors: () => ({
    ...bareTable(llamaTable({ shift: 1 })),
    ...headNorms(1),
    ...gatedHalves("layers.*.mlp", ""),
    ...gatedHalves("layers.*.mlp.shared_experts", "_shexp"),
    ...stackedExperts("layers.*.mlp.experts"),
    ...CORRECTION,
    "layers.*.mlp.gate": { to: "blk.*.ffn_gate_inp", optional: "layers" },
    "layers.*.self_attn.indexer.q_proj": { to: "blk.*.indexer.q_proj", optional: "layers" },
    "layers.*.self_attn.indexer.k_proj": { to: "blk.*.indexer.k_proj", optional: "layers" },
    "layers.*.self_attn.indexer.q_norm": { to: "blk.*.indexer.q_norm", shift: 1, optional: "layers" },
    "layers.*.self_attn.indexer.k_norm": { to: "blk.*.indexer.k_norm", shift: 1, optional: "layers" },
  }),
};

const gatedHalves = (at: string, suffix: string): TensorTable => ({
  [`${at}.gate_up_proj`]: [
    { to: `blk.*.ffn_gate${suffix}`, rows: halfOfMatrix(false), optional: "layers" },
    { to: `blk.*.ffn_up${suffix}`, rows: halfOfMatrix(true), optional: "layers" },
  ],
  [`${at}.down_proj`]: { to: `blk.*.ffn_down${suffix}`, optional: "layers" },
});

/** Leading layers that are dense and attend to all positions; no other layer is or does. */
function denseLayers(config: Config): number {
  const nLayers = layersOf(config);
  const isDense = (key: string, kind: string): boolean[] => {
    const kinds = config.find(key);
    if (!Array.isArray(kinds) || kinds.length !== nLayers) throw config.wrong(key, `a list of ${nLayers}`);
    return kinds.map((each) => each === kind);
  };
  const dense = isDense("mlp_layer_types", "dense");
  const count = dense.lastIndexOf(true) + 1;
  if (dense.slice(0, count).includes(false)) throw config.wrong("mlp_layer_types", "dense layers first");
  const attends = isDense("layer_types", "full_attention");
  if (String(attends) !== String(dense)) throw config.wrong("layer_types", "full attention in dense layers only");
  return count;
}

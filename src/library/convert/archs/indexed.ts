/** Families whose layers choose the positions that they attend to by an indexer. */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { u32, type Architecture, type TensorTable } from "../architecture.ts";
import { layersOf, type Config } from "../config.ts";
import { deepseek } from "./deepseek.ts";

const deepseek3 = deepseek(2);

const indexerKeys = (config: Config): Record<string, WriteValue> => ({
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

/** GLM 5: some layers use an earlier layer's choice. */
export const glmDsa: Architecture = {
  arch: "glm-dsa",
  metadata(config) {
    const kinds = config.find("indexer_types");
    const nLayers = layersOf(config);
    if (kinds !== undefined && !(Array.isArray(kinds) && kinds.length === nLayers)) {
      throw config.wrong("indexer_types", `a list of ${nLayers}`);
    }
    return {
      ...deepseek3.metadata(config),
      ...indexerKeys(config),
      ...(kinds === undefined ? {} : { "attention.indexer.types": kinds.map((kind) => kind === "full") }),
    };
  },
  tensors: (config) => ({ ...deepseek3.tensors(config), ...indexerTable("layers") }),
};

/**
 * Hunyuan 4 as it is published: latent attention with an indexer and gates, experts in stacks, and hyper-connections.
 * RoPE rotates the last part of each head, in halves; a GGUF has them in pairs of neighbours.
 */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type RowSelection, type TensorTable } from "../architecture.ts";
import { layersOf, type Config } from "../config.ts";
import { latentMetadata, latentTable } from "./deepseek.ts";
import { stackedExperts } from "./experts.ts";
import { indexerKeys, indexerTypes } from "./indexed.ts";

export const hyV4: Architecture = {
  arch: "hy_v4",
  metadata: (config) => ({
    ...latentMetadata(config, { eps: 1e-5 }),
    expert_gating_func: u32(2),
    expert_weights_scale: f32(config.number("routed_scaling_factor", 2.827)),
    leading_dense_block_count: u32(denseLayers(config)),
    ...limits(config),
    "hyper_connection.count": u32(config.count("hc_mult", { fallback: 4 })),
    "hyper_connection.epsilon": f32(config.number("hc_eps", 1e-6)),
    "hyper_connection.magnitude": f32(config.number("hc_magnitude", 2)),
    ...(hasIndexers(config) && { ...indexerKeys(config), ...indexerTypes(config) }),
  }),
  tensors(config) {
    const { q_b_proj, kv_a_proj_with_mqa, wq_b, wk } = pairedRows(config);
    return {
      ...latentTable(),
      "layers.*.self_attn.q_b_proj": { to: "blk.*.attn_q_b", rows: q_b_proj },
      "layers.*.self_attn.kv_a_proj_with_mqa": { to: "blk.*.attn_kv_a_mqa", rows: kv_a_proj_with_mqa },
      "layers.*.self_attn.linear_gate": { to: "blk.*.attn_gate" },
      "layers.*.self_attn.learnable_sink_param": { to: "blk.*.attn_sinks.weight" },
      "layers.*.self_attn.indexer.wq_b": { to: "blk.*.indexer.attn_q_b", rows: wq_b, optional: "layers" },
      "layers.*.self_attn.indexer.wk": { to: "blk.*.indexer.attn_k", rows: wk, optional: "layers" },
      "layers.*.self_attn.indexer.k_norm": { to: "blk.*.indexer.k_norm", rows: wk, optional: "layers" },
      "layers.*.self_attn.indexer.weights_proj": { to: "blk.*.indexer.proj", optional: "layers" },
      "layers.*.mlp.gate": { to: "blk.*.ffn_gate_inp", optional: "layers" },
      ...stackedExperts("layers.*.mlp.experts"),
      ...connections("layers.*.hc_attn_layer.hc_pre.hc_", "blk.*.hc_attn_"),
      ...connections("layers.*.hc_mlp_layer.hc_pre.hc_", "blk.*.hc_ffn_"),
      ...connections("hc_head.hc_head_", "output_hc_"),
    };
  },
  unused: /^mtp_layers\./,
};

const hasIndexers = (config: Config): boolean =>
  config.find("indexer_types") !== undefined || config.find("index_topk") !== undefined;

const connections = (from: string, to: string): TensorTable => ({
  [`${from}fn`]: { to: `${to}fn.weight`, precise: true },
  [`${from}base`]: { to: `${to}base.weight` },
  [`${from}scale`]: { to: `${to}scale.weight` },
});

/** The rows of matrices whose products rotate. */
function pairedRows(config: Config) {
  const rotary = config.count("qk_rope_head_dim");
  const inPairs =
    (heads: number) =>
    (shape: readonly number[]): RowSelection => {
      const [rows = 0] = shape;
      const headDim = rows / heads;
      const plain = headDim - rotary;
      const order = Array.from({ length: rows }, (_, row) => {
        const [head, i] = [Math.floor(row / headDim) * headDim, (row % headDim) - plain];
        return i < 0 ? row : head + plain + Math.floor(i / 2) + (i % 2) * (rotary / 2);
      });
      return { shape, order };
    };
  return {
    q_b_proj: inPairs(config.count("num_attention_heads")),
    kv_a_proj_with_mqa: inPairs(1),
    wq_b: inPairs(config.count("index_n_heads", { fallback: 16 })),
    wk: inPairs(1),
  };
}

/** Limits of the routed experts' gates in each layer; 0: none. */
function limits(config: Config): Record<string, WriteValue> {
  const limit = config.number("swiglu_limit", 10);
  return limit > 0 ? { swiglu_clamp_exp: new Float32Array(layersOf(config)).fill(limit) } : {};
}

/** Leading layers without experts; no other layer is dense. */
function denseLayers(config: Config): number {
  const kinds = config.find("mlp_layer_types");
  if (kinds === undefined) return config.count("first_k_dense_replace", { min: 0, fallback: 1 });
  const nLayers = layersOf(config);
  if (!Array.isArray(kinds) || kinds.length !== nLayers) throw config.wrong("mlp_layer_types", `a list of ${nLayers}`);
  const count = kinds.lastIndexOf("dense") + 1;
  if (kinds.slice(0, count).some((kind) => kind !== "dense"))
    throw config.wrong("mlp_layer_types", "dense layers first");
  return count;
}

/** Granite 4 hybrid: Mamba 2 in most layers, attention without positions in the others. */
import { u32, type Architecture, type TensorRule, type TensorTable } from "../architecture.ts";
import { layersOf, type Config } from "../config.ts";
import { decoderMetadata, headsOf, llamaTable } from "../decoder.ts";
import { bareTable, expertMetadata, halfOf } from "./experts.ts";
import { mamba2Parts, taps } from "./recurrent.ts";
import { graniteFactors } from "./sequential.ts";

export const graniteHybrid: Architecture = {
  arch: "granitehybrid",
  activations: ["silu"],
  metadata(config) {
    const kvHeads = headsOf(config).nKvHeads;
    const nHeads = config.count("mamba_n_heads");
    return {
      ...decoderMetadata(config),
      ...graniteFactors(config),
      "attention.head_count_kv": Uint32Array.from(kindsOf(config), (attends) => (attends ? kvHeads : 0)),
      "rope.scaling.finetuned": config.find("position_embedding_type") === "rope", // read as: there is a rotation
      feed_forward_length: u32(config.count("shared_intermediate_size")),
      "ssm.conv_kernel": u32(config.count("mamba_d_conv", { fallback: 4 })),
      "ssm.state_size": u32(config.count("mamba_d_state")),
      "ssm.group_count": u32(config.count("mamba_n_groups", { fallback: 1 })),
      "ssm.time_step_rank": u32(nHeads),
      "ssm.inner_size": u32(nHeads * config.count("mamba_d_head")),
      ...(hasExperts(config)
        ? {
            ...expertMetadata(config, "intermediate_size"),
            expert_shared_feed_forward_length: u32(config.count("shared_intermediate_size")),
          }
        : {}),
    };
  },
  tensors(config) {
    const suffix = hasExperts(config) ? "_shexp" : "";
    return {
      ...inSomeLayers(bareTable(llamaTable({ heads: headsOf(config) }))),
      "layers.*.mamba.in_proj": { to: "blk.*.ssm_in", optional: "layers" },
      "layers.*.mamba.conv1d": { to: "blk.*.ssm_conv1d", rows: taps, precise: true, optional: "layers" },
      "layers.*.mamba.out_proj": { to: "blk.*.ssm_out", optional: "layers" },
      ...inSomeLayers(mamba2Parts("layers.*.mamba", config.count("mamba_n_groups", { fallback: 1 }))),
      "layers.*.shared_mlp.input_linear": [
        { to: `blk.*.ffn_gate${suffix}`, rows: halfOfMatrix(false) },
        { to: `blk.*.ffn_up${suffix}`, rows: halfOfMatrix(true) },
      ],
      "layers.*.shared_mlp.output_linear": { to: `blk.*.ffn_down${suffix}` },
      ...(hasExperts(config) ? EXPERTS : {}),
    };
  },
};

const hasExperts = (config: Config): boolean => (config.findNumber("num_local_experts") ?? 0) > 0;

const EXPERTS: TensorTable = {
  "layers.*.block_sparse_moe.router.layer": { to: "blk.*.ffn_gate_inp" },
  "layers.*.block_sparse_moe.input_linear": [
    { to: "blk.*.ffn_gate_exps", rows: halfOf(false) },
    { to: "blk.*.ffn_up_exps", rows: halfOf(true) },
  ],
  "layers.*.block_sparse_moe.output_linear": { to: "blk.*.ffn_down_exps" },
};

/** Gate and up in one matrix, in this order. */
export const halfOfMatrix =
  (second: boolean) =>
  ([rows = 0, dim = 0]: readonly number[]) => ({
    shape: [rows / 2, dim],
    order: Array.from({ length: rows / 2 }, (_, i) => i + (second ? rows / 2 : 0)),
  });

/** True for attention layers, whose kind has two names. */
function kindsOf(config: Config): boolean[] {
  const kinds = config.find("layer_types") ?? config.find("layers_block_type");
  const nLayers = layersOf(config);
  if (!Array.isArray(kinds) || kinds.length !== nLayers) throw config.wrong("layer_types", `a list of ${nLayers}`);
  return kinds.map((kind) => kind === "attention" || kind === "full_attention");
}

/** Attention and recurrences are each in some layers. */
const inSomeLayers = (table: TensorTable): TensorTable =>
  Object.fromEntries(
    Object.entries(table).map(([name, rule]) =>
      /self_attn|mamba/.test(name) ? [name, { ...(rule as TensorRule), optional: "layers" as const }] : [name, rule],
    ),
  );

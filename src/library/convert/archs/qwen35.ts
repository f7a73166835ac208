/**
 * Qwen 3 Next and Qwen 3.5: gated delta rules in three of four layers. Norms are stored minus 1, except in the delta
 * rules. Neighbouring value heads share a key head; a GGUF of Qwen 3.5 interleaves them, so that value head i belongs
 * to key head i modulo their number.
 */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { u32, type Architecture, type RowSelection, type TensorRule, type TensorTable } from "../architecture.ts";
import { layersOf, type Config } from "../config.ts";
import { checkActivation, decoderMetadata, headNorms, llamaTable, rotaryPart } from "../decoder.ts";
import { bareTable, expertMetadata, inMlp, sharedExpert, stackedExperts } from "./experts.ts";
import { decay, taps } from "./recurrent.ts";

const HEADS = { headDim: 256 };
/** The loader's limits. */
const [HEADS_MAX, HEAD_DIM_MAX] = [{ max: 512 }, { max: 2048 }];

function deltaMetadata(config: Config): Record<string, WriteValue> {
  checkActivation(config, ["silu"]);
  const valueHeads = config.count("linear_num_value_heads");
  const types = config.find("layer_types");
  const interval = config.findCount("full_attention_interval") ?? 4;
  const usual = Array.from({ length: layersOf(config) }, (_, i) => ((i + 1) % interval === 0 ? "full" : "linear"));
  if (types !== undefined && String(types) !== usual.map((type) => `${type}_attention`).join(",")) {
    throw config.wrong("layer_types", `full attention in every layer of ${interval}`);
  }
  return {
    ...decoderMetadata(config, { ...HEADS, ctxLen: 32_768 }),
    ...rotaryPart(config, { ...HEADS, part: 0.25 }),
    full_attention_interval: u32(interval),
    "ssm.conv_kernel": u32(config.count("linear_conv_kernel_dim", { fallback: 4 })),
    "ssm.state_size": u32(config.count("linear_key_head_dim")),
    "ssm.group_count": u32(config.count("linear_num_key_heads")),
    "ssm.time_step_rank": u32(valueHeads),
    "ssm.inner_size": u32(valueHeads * config.count("linear_value_head_dim")),
  };
}

/** Norms, gated attention, and the weights of all delta rules. */
function deltaTable(rows: { values?: Selection; mixed?: Selection } = {}): TensorTable {
  const some = (rule: TensorRule): TensorRule => ({ ...rule, optional: "layers" });
  const shared = Object.entries({ ...bareTable(llamaTable({ shift: 1 })), ...headNorms(1) }).map(
    // Each entry is a single rule
    ([name, rule]) => [name, name.includes("self_attn") ? some(rule as TensorRule) : rule] as const,
  );
  const of = (selection: Selection | undefined) => (selection ? { rows: selection } : {});
  const mixed = rows.mixed;
  return {
    ...Object.fromEntries(shared),
    "layers.*.post_attention_layernorm": { to: "blk.*.post_attention_norm", shift: 1 },
    "layers.*.linear_attn.conv1d": some({
      to: "blk.*.ssm_conv1d",
      precise: true,
      rows: (shape) => ({ ...taps(shape), ...(mixed && { order: mixed(shape).order ?? [] }) }),
    }),
    "layers.*.linear_attn.A_log": some({ to: "blk.*.ssm_a", value: decay, ...of(rows.values) }),
    "layers.*.linear_attn.dt_bias": some({ to: "blk.*.ssm_dt.bias", ...of(rows.values) }),
    "layers.*.linear_attn.norm": some({ to: "blk.*.ssm_norm" }),
  };
}

type Selection = (shape: readonly number[]) => RowSelection;

const sharedExperts = (): TensorTable => ({
  ...inMlp(),
  ...sharedExpert("layers.*.mlp.shared_expert"),
  "layers.*.mlp.shared_expert_gate": { to: "blk.*.ffn_gate_inp_shexp" },
});

const expertKeys = (config: Config): Record<string, WriteValue> => ({
  ...expertMetadata(config),
  expert_shared_feed_forward_length: u32(config.count("shared_expert_intermediate_size")),
});

export const qwen3next: Architecture = {
  arch: "qwen3next",
  metadata: (config) => ({ ...deltaMetadata(config), ...expertKeys(config) }),
  tensors: () => ({
    ...deltaTable(),
    "layers.*.linear_attn.in_proj_qkvz": { to: "blk.*.ssm_in", optional: "layers" },
    "layers.*.linear_attn.in_proj_ba": { to: "blk.*.ssm_ba", optional: "layers" },
    "layers.*.linear_attn.out_proj": { to: "blk.*.ssm_out", optional: "layers" },
    ...sharedExperts(),
  }),
  unused: /^mtp\./,
};

/** Reorders value heads: the file groups them by key head, and llama.cpp takes one of each group in turn. */
function turns(config: Config) {
  const keyHeads = config.count("linear_num_key_heads", HEADS_MAX);
  const valueHeads = config.count("linear_num_value_heads", HEADS_MAX);
  if (valueHeads % keyHeads !== 0) throw config.wrong("linear_num_value_heads", `a multiple of ${keyHeads}`);
  const each = valueHeads / keyHeads;
  const heads = Array.from({ length: valueHeads }, (_, i) => (i % keyHeads) * each + Math.floor(i / keyHeads));
  const inHeads = (rowsOfHead: number, first = 0): number[] =>
    heads.flatMap((head) => Array.from({ length: rowsOfHead }, (_, i) => first + head * rowsOfHead + i));
  const valueDim = config.count("linear_value_head_dim", HEAD_DIM_MAX);
  const keyRows = 2 * keyHeads * config.count("linear_key_head_dim", HEAD_DIM_MAX);
  const keys = Array.from({ length: keyRows }, (_, i) => i);
  return {
    /** One row for each head. */
    values: (shape: readonly number[]) => ({ shape, order: heads }),
    /** The rows of values. */
    wide: (shape: readonly number[]) => ({ shape, order: inHeads(valueDim) }),
    /** Queries and keys unchanged, then values. */
    mixed: (shape: readonly number[]) => ({ shape, order: [...keys, ...inHeads(valueDim, keyRows)] }),
    /** The columns of values. */
    columns: (shape: readonly number[]) => {
      const order = Array.from({ length: shape[0] ?? 0 }, (_, row) => heads.map((head) => row * valueHeads + head));
      return { shape, order: order.flat(), rowLen: valueDim };
    },
  };
}

function qwen35Table(config: Config): TensorTable {
  const { values, wide, mixed, columns } = turns(config);
  return {
    ...deltaTable({ values, mixed }),
    "layers.*.linear_attn.in_proj_qkv": { to: "blk.*.attn_qkv", rows: mixed, optional: "layers" },
    "layers.*.linear_attn.in_proj_z": { to: "blk.*.attn_gate", rows: wide, optional: "layers" },
    "layers.*.linear_attn.in_proj_b": { to: "blk.*.ssm_beta", rows: values, optional: "layers" },
    "layers.*.linear_attn.in_proj_a": { to: "blk.*.ssm_alpha", rows: values, optional: "layers" },
    "layers.*.linear_attn.out_proj": { to: "blk.*.ssm_out", rows: columns, optional: "layers" },
  };
}

export const qwen35: Architecture = {
  arch: "qwen35",
  metadata: deltaMetadata,
  tensors(config) {
    const { "layers.*.mlp.gate_proj": gate, "layers.*.mlp.up_proj": up, "layers.*.mlp.down_proj": down } = llamaTable();
    return {
      ...qwen35Table(config),
      "layers.*.mlp.gate_proj": gate!,
      "layers.*.mlp.up_proj": up!,
      "layers.*.mlp.down_proj": down!, // Llama has all three
    };
  },
  unused: /^mtp\./,
};

export const qwen35moe: Architecture = {
  arch: "qwen35moe",
  metadata: (config) => ({ ...deltaMetadata(config), ...expertKeys(config) }),
  tensors: (config) => ({ ...qwen35Table(config), ...sharedExperts(), ...stackedExperts("layers.*.mlp.experts") }),
  unused: /^mtp\./,
};

/**
 * Kimi K3 as it is published: experts in MXFP4, delta attention in most layers, and scores of earlier states as a norm
 * and a projection, of which a GGUF has the product.
 */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type TensorRule, type TensorTable } from "../architecture.ts";
import { layersOf, type Config } from "../config.ts";
import { checkActivation, decoderMetadata } from "../decoder.ts";
import { bareTable, expertMetadata, sharedExpert } from "./experts.ts";
import { decay } from "./recurrent.ts";

export const kimiK3: Architecture = {
  arch: "kimi-k3",
  metadata,
  tensors: (config) => {
    const attends = attendingLayers(config);
    const firstExperts = config.count("first_k_dense_replace", { min: 0 });
    const table: Record<string, TensorTable[string]> = {
      ...withoutAttention(),
      ...scores("layers.*.self_attention_res", "blk.*.attn_res_score"),
      ...scores("layers.*.mlp_res", "blk.*.ffn_res_score"),
      ...scores("output_attn_res", "output_res_score"),
    };
    attends.forEach((isLatent, layer) => {
      Object.assign(table, inLayer(layer, isLatent ? LATENT : deltaTable(config)));
      Object.assign(table, inLayer(layer, layer < firstExperts ? MLP : EXPERTS));
    });
    return table;
  },
  unused: /_res_norm\.weight$|\.weight_scale$/, // read with others
  tiktoken: "kimi-k2",
};

/** True for layers that attend; the configuration counts from 1. */
function attendingLayers(config: Config): readonly boolean[] {
  const listed = config.findPart("linear_attn_config")?.findNumbers("full_attn_layers");
  if (!listed) throw config.wrong("linear_attn_config", "an object with 'full_attn_layers'");
  return Array.from({ length: layersOf(config) }, (_, layer) => listed.includes(layer + 1));
}

function metadata(config: Config): Record<string, WriteValue> {
  checkActivation(config, ["situ"]);
  checkActivation(config, ["sigmoid"], "moe_router_activation_func");
  if (!config.flag("mla_use_nope", false)) throw config.wrong("mla_use_nope", "true");
  const attends = attendingLayers(config);
  const linear = config.findPart("linear_attn_config")!; // attendingLayers read it
  const [rank, rotary] = [config.count("kv_lora_rank"), config.count("qk_rope_head_dim")];
  const [queryRank, latent] = [config.findCount("q_lora_rank"), config.findCount("routed_expert_hidden_size")];
  const bound = linear.findNumber("gate_lower_bound");
  const ctxLen = config.findCount("model_max_length");
  return {
    ...decoderMetadata(config, ctxLen === undefined ? {} : { ctxLen }),
    "attention.head_count_kv": Uint32Array.from(attends, Number),
    ...(queryRank === undefined ? {} : { "attention.q_lora_rank": u32(queryRank) }),
    "attention.kv_lora_rank": u32(rank),
    "attention.key_length": u32(rank + rotary),
    "attention.value_length": u32(rank),
    "attention.key_length_mla": u32(config.count("qk_nope_head_dim") + rotary),
    "attention.value_length_mla": u32(config.count("v_head_dim")),
    "rope.dimension_count": u32(rotary),
    "ssm.conv_kernel": u32(linear.count("short_conv_kernel_size")),
    "kda.head_dim": u32(linear.count("head_dim")),
    ...(bound === undefined ? {} : { "kda.gate_lower_bound": f32(bound) }),
    ...expertMetadata(config),
    expert_shared_count: u32(config.count("num_shared_experts", { fallback: 0, min: 0 })),
    leading_dense_block_count: u32(config.count("first_k_dense_replace", { min: 0 })),
    expert_weights_scale: f32(config.number("routed_scaling_factor")),
    expert_weights_norm: config.flag("moe_renormalize", true),
    expert_gating_func: u32(2),
    ...(latent === undefined ? {} : { expert_latent_length: u32(latent) }),
    "activation.situ_beta": f32(config.number("activation_situ_beta")),
    "activation.situ_linear_beta": f32(config.number("activation_situ_linear_beta")),
    "attn_res.block_size": u32(config.count("attn_res_block_size")),
  };
}

const withoutAttention = (): TensorTable =>
  Object.fromEntries(Object.entries(bareTable()).filter(([name]) => !name.includes(".self_attn.")));

/** The rules of one layer. */
const inLayer = (layer: number, table: Readonly<Record<string, TensorRule>>): TensorTable =>
  Object.fromEntries(
    Object.entries(table).map(([name, rule]) => [
      `layers.${layer}.${name}`,
      { ...rule, to: `blk.${layer}.${rule.to}` },
    ]),
  );

const scores = (from: string, to: string): TensorTable => ({
  [`${from}_proj`]: {
    to,
    rows: (shape) => ({ shape: shape.slice(-1) }),
    times: (name) => name.replace(/_proj\.weight$/, "_norm.weight"),
  },
});

const LATENT: Readonly<Record<string, TensorRule>> = {
  "self_attn.q_proj": { to: "attn_q", optional: true },
  "self_attn.q_a_proj": { to: "attn_q_a", optional: true },
  "self_attn.q_a_layernorm": { to: "attn_q_a_norm", optional: true },
  "self_attn.q_b_proj": { to: "attn_q_b", optional: true },
  "self_attn.kv_a_proj_with_mqa": { to: "attn_kv_a_mqa" },
  "self_attn.kv_a_layernorm": { to: "attn_kv_a_norm" },
  "self_attn.kv_b_proj": { to: "attn_kv_b" },
  "self_attn.g_proj": { to: "attn_gate", optional: true },
  "self_attn.o_proj": { to: "attn_output" },
};

function deltaTable(config: Config): Readonly<Record<string, TensorRule>> {
  const heads = config.count("num_attention_heads", { max: HEADS_MAX });
  const taps: TensorRule["rows"] = (shape) => ({ shape: [shape[0] ?? 0, 1, shape.at(-1) ?? 0] });
  const first = Array.from({ length: heads }, (_, head) => head);
  return {
    ...Object.fromEntries(
      ["q", "k", "v"].flatMap((part) => [
        [`self_attn.${part}_proj`, { to: `attn_${part}` }],
        [`self_attn.${part}_conv1d`, { to: `ssm_conv1d_${part}`, rows: taps, precise: true }],
      ]),
    ),
    "self_attn.f_a_proj": { to: "ssm_f_a" },
    "self_attn.f_b_proj": { to: "ssm_f_b" },
    "self_attn.b_proj": { to: "ssm_beta" },
    "self_attn.g_proj": { to: "ssm_g" },
    "self_attn.A_log": { to: "ssm_a", value: decay, rows: () => ({ shape: [heads], order: first, rowLen: 1 }) },
    "self_attn.dt_bias": { to: "ssm_dt.bias", rows: (shape) => ({ shape: [shape.reduce((a, b) => a * b, 1)] }) },
    "self_attn.o_norm": { to: "ssm_norm" },
    "self_attn.o_proj": { to: "attn_output" },
  };
}

/** The loader's limit. */
const HEADS_MAX = 65_536;

const MLP: Readonly<Record<string, TensorRule>> = {
  "mlp.gate_proj": { to: "ffn_gate" },
  "mlp.up_proj": { to: "ffn_up" },
  "mlp.down_proj": { to: "ffn_down" },
};

const EXPERTS: Readonly<Record<string, TensorRule>> = {
  "block_sparse_moe.gate": { to: "ffn_gate_inp" },
  "block_sparse_moe.gate.e_score_correction_bias": { to: "exp_probs_b.bias" },
  ...Object.fromEntries(
    (["w1 gate", "w3 up", "w2 down"] as const).flatMap((pair) => {
      const [from, to] = pair.split(" ");
      const at = `block_sparse_moe.experts.#.${from}`;
      return [
        [at, { to: `ffn_${to}_exps`, optional: true }],
        [`${at}.weight_packed`, { to: `ffn_${to}_exps.weight`, isPacked: true, optional: true }],
      ];
    }),
  ),
  "block_sparse_moe.routed_expert_down_proj": { to: "ffn_routed_down", optional: true },
  "block_sparse_moe.routed_expert_norm": { to: "ffn_routed_norm", optional: true },
  "block_sparse_moe.routed_expert_up_proj": { to: "ffn_routed_up", optional: true },
  ...Object.fromEntries(
    Object.entries(sharedExpert("block_sparse_moe.shared_experts")).map(([name, rule]) => {
      const { to } = rule as TensorRule;
      return [name, { to: to.replace("blk.*.", ""), optional: true }];
    }),
  ),
};

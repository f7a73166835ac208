/** DeepSeek 2 and 3, and relatives with latent attention. */
import type { WriteValue } from "../../../engine/formats/index.ts";
import { f32, u32, type Architecture, type TensorTable } from "../architecture.ts";
import type { Config } from "../config.ts";
import { checkActivation, decoderMetadata, llamaTable, type DecoderDefaults } from "../decoder.ts";
import { ropeParameters, ropeType } from "../rope.ts";
import { CORRECTION, deepseekRouting, expertMetadata, inMlp, mixedTable, sharedExpert } from "./experts.ts";

/** YaRN whose magnitude scales the whole scores, not the rotated part. A GGUF has a tenth of its factor. */
function latentYarn(config: Config): Record<string, WriteValue> {
  const parameters = ropeParameters(config);
  if (!parameters || ropeType(parameters) !== "yarn") return {};
  const ofAll = parameters.number("mscale_all_dim", 0);
  if (ofAll === 0 || parameters.number("mscale", 1) !== ofAll) {
    throw parameters.wrong("mscale_all_dim", "the same number as 'mscale', not 0");
  }
  return { "rope.scaling.yarn_log_multiplier": f32(ofAll / 10), "rope.scaling.attn_factor": f32(1) };
}

/** DeepSeek 2 and 3: latent attention, whose unpacking matrices stay fused. */
export function deepseek(score: 1 | 2): Architecture {
  return {
    arch: "deepseek2",
    metadata: (config) => ({ ...latentMetadata(config), ...latentYarn(config), expert_gating_func: u32(score) }),
    tensors: () => ({ ...latentTable(), ...inMlp() }),
    tiktoken: "kimi-k2", // Moonshot's models
  };
}

/** Latent attention and DeepSeek's experts, without a score. */
export function latentMetadata(config: Config, defaults: DecoderDefaults = {}): Record<string, WriteValue> {
  checkActivation(config, ["silu"]);
  const rotary = config.count("qk_rope_head_dim");
  const queryRank = config.findCount("q_lora_rank");
  return {
    ...decoderMetadata(config, defaults),
    "attention.head_count_kv": u32(config.count("num_attention_heads")),
    "attention.key_length": u32(config.count("qk_nope_head_dim") + rotary),
    "attention.value_length": u32(config.count("v_head_dim")),
    "attention.kv_lora_rank": u32(config.count("kv_lora_rank")),
    ...(queryRank === undefined ? {} : { "attention.q_lora_rank": u32(queryRank) }),
    "rope.dimension_count": u32(rotary),
    ...expertMetadata(config),
    ...deepseekRouting(config),
  };
}

/** All weights except the router's and the experts'. */
export const latentTable = (): TensorTable => ({
  ...mixedTable(withoutKeys()),
  "layers.*.self_attn.q_proj": { to: "blk.*.attn_q", optional: true },
  "layers.*.self_attn.q_a_proj": { to: "blk.*.attn_q_a", optional: true },
  "layers.*.self_attn.q_a_layernorm": { to: "blk.*.attn_q_a_norm", optional: true },
  "layers.*.self_attn.q_b_proj": { to: "blk.*.attn_q_b", optional: true },
  "layers.*.self_attn.kv_a_proj_with_mqa": { to: "blk.*.attn_kv_a_mqa" },
  "layers.*.self_attn.kv_a_layernorm": { to: "blk.*.attn_kv_a_norm" },
  "layers.*.self_attn.kv_b_proj": { to: "blk.*.attn_kv_b" },
  ...CORRECTION,
  ...sharedExpert("layers.*.mlp.shared_experts"),
});

const withoutKeys = (): TensorTable =>
  Object.fromEntries(Object.entries(llamaTable()).filter(([name]) => !/\.[qkv]_proj$/.test(name)));

export const deepseek2 = deepseek(1);
export const deepseek3 = deepseek(2);

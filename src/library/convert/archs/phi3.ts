/**
 * Phi 3 and 4, `phi3`: query, key and value in one matrix, gate and up in another, both unchanged; a short and a long
 * set of frequency divisors.
 */
import { f32, u32, type Architecture, type Computed } from "../architecture.ts";
import type { Config } from "../config.ts";
import { decoderMetadata, headsOf, llamaTable } from "../decoder.ts";
import { isLongRope, ropeParameters } from "../rope.ts";

export const phi3: Architecture = {
  arch: "phi3",
  name: { fallback: "Phi-3", known: /phi-?\d/i },
  activations: ["silu"],
  metadata(config) {
    const { "attention.key_length": _, "attention.value_length": __, ...rest } = decoderMetadata(config);
    return {
      ...rest,
      "rope.dimension_count": u32(rotaryDim(config)),
      "rope.scaling.original_context_length": u32(originalCtxLen(config)),
      "attention.sliding_window": u32(config.count("sliding_window", { fallback: 0, min: 0 })),
      ...(isLongRope(config) ? { "rope.scaling.attn_factor": f32(magnitude(config)) } : {}),
    };
  },
  tensors() {
    const { "layers.*.mlp.gate_proj": _, "layers.*.mlp.up_proj": __, ...table } = llamaTable();
    const fused = Object.entries(table).filter(([name]) => !/\.[qkv]_proj$/.test(name));
    return {
      ...Object.fromEntries(fused),
      "layers.*.self_attn.qkv_proj": { to: "blk.*.attn_qkv" },
      "layers.*.mlp.gate_up_proj": { to: "blk.*.ffn_up" },
    };
  },
  computed(config): Computed {
    if (!isLongRope(config)) return {};
    return { rope_factors_long: factors(config, "long_factor"), rope_factors_short: factors(config, "short_factor") };
  },
};

function rotaryDim(config: Config): number {
  const part = ropeParameters(config)?.findNumber("partial_rotary_factor") ?? config.number("partial_rotary_factor", 1);
  return Math.floor(part * headsOf(config).headDim);
}

function originalCtxLen(config: Config): number {
  return (
    ropeParameters(config)?.findCount("original_max_position_embeddings") ??
    config.findCount("original_max_position_embeddings") ??
    config.count("max_position_embeddings")
  );
}

/** The attention factor for contexts longer than the original one. */
function magnitude(config: Config): number {
  const given = ropeParameters(config)?.findNumber("attention_factor");
  const original = originalCtxLen(config);
  const scale = config.count("max_position_embeddings") / original;
  return given ?? (scale > 1 ? Math.sqrt(1 + Math.log(scale) / Math.log(original)) : 1);
}

function factors(config: Config, key: "long_factor" | "short_factor"): Float32Array {
  const expected = rotaryDim(config) / 2;
  const found = ropeParameters(config)?.findNumbers(key);
  if (found?.length !== expected) throw config.wrong("rope_scaling", `a '${key}' of ${expected} numbers`);
  return Float32Array.from(found);
}

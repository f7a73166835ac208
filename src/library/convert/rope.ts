/**
 * RoPE parameters of a configuration as metadata and tensors. Both spellings are read: `rope_theta` with
 * `rope_scaling`, and `rope_parameters`, which holds both and may separate full from sliding attention. Scaling types
 * follow modeling_rope_utils.py of transformers; keys follow llama.cpp.
 */
import { AppError } from "../../base/index.ts";
import type { WriteValue } from "../../engine/formats/index.ts";
import { defined, f32, u32, type Computed } from "./architecture.ts";
import type { Config } from "./config.ts";

const DEFAULT_BASE = 10_000;

/** The parameters of full-attention layers. */
export function ropeParameters(config: Config): Config | undefined {
  const all = config.findPart("rope_parameters") ?? config.findPart("rope_scaling");
  return all?.findPart("full_attention") ?? all;
}

export function ropeType(parameters: Config | undefined): string {
  return String(parameters?.find("rope_type") ?? parameters?.find("type") ?? "default");
}

function ropeBase(config: Config, fallback = DEFAULT_BASE): number {
  return ropeParameters(config)?.findNumber("rope_theta") ?? config.findNumber("rope_theta") ?? fallback;
}

/** The RoPE base of sliding-window layers, if different. */
export function localRopeBase(config: Config): number | undefined {
  const sliding = config.findPart("rope_parameters")?.findPart("sliding_attention");
  return sliding?.findNumber("rope_theta") ?? config.findNumber("rope_local_base_freq");
}

/** Base and scaling. Longrope has its factors in separate tensors; see `archs/phi3.ts`. */
export function ropeMetadata(
  config: Config,
  { ropeBase: fallback }: { ropeBase?: number },
): Record<string, WriteValue> {
  const parameters = ropeParameters(config);
  const type = ropeType(parameters);
  const base = { "rope.freq_base": f32(ropeBase(config, fallback)) };
  switch (type) {
    case "default":
    case "llama3": // `llama3Factors`
    case "su":
    case "longrope":
      return base;
    case "linear":
      return { ...base, "rope.scaling.type": "linear", "rope.scaling.factor": f32(parameters!.number("factor")) };
    case "yarn":
      return { ...base, ...yarnMetadata(config, parameters!) };
    default: {
      const expected = "default, linear, yarn, longrope or llama3";
      throw new AppError("unsupported", `${config.label}: rope_type: expected ${expected}, got '${type}'`);
    }
  }
}

export function yarnMetadata(config: Config, parameters: Config): Record<string, WriteValue> {
  const factor = parameters.number("factor");
  const ctxLenOrig = originalCtxLen(config, parameters);
  return {
    "rope.scaling.type": "yarn",
    "rope.scaling.factor": f32(factor),
    "rope.scaling.original_context_length": u32(ctxLenOrig),
    ...(parameters.find("truncate") === false ? { "rope.scaling.yarn_truncate": false } : {}),
    ...defined({
      "rope.scaling.yarn_beta_fast": float(parameters.findNumber("beta_fast")),
      "rope.scaling.yarn_beta_slow": float(parameters.findNumber("beta_slow")),
      "rope.scaling.attn_factor": float(yarnMagnitude(parameters, factor)),
    }),
  };
}

const float = (value: number | undefined): WriteValue | undefined => (value === undefined ? undefined : f32(value));

/** The attention factor of the configuration, relative to YaRN's default; undefined if not set. */
function yarnMagnitude(parameters: Config, factor: number): number | undefined {
  const scaleOf = (mul: number): number => (factor <= 1 ? 1 : 0.1 * mul * Math.log(factor) + 1);
  const given = parameters.findNumber("attention_factor");
  const mul = parameters.findNumber("mscale");
  const mulAll = parameters.findNumber("mscale_all_dim");
  const wanted = given ?? (mul && mulAll ? scaleOf(mul) / scaleOf(mulAll) : undefined);
  return wanted === undefined ? undefined : wanted / scaleOf(1);
}

function originalCtxLen(config: Config, parameters: Config): number {
  return (
    parameters.findCount("original_max_position_embeddings") ??
    config.findCount("original_max_position_embeddings") ??
    config.count("max_position_embeddings")
  );
}

/**
 * The divisors of Llama 3.1's frequencies, `rope_freqs` (headDim / 2): 1 for high frequencies, `factor` for low ones,
 * interpolated between. Empty for other scaling types.
 */
export function llama3Factors(config: Config, headDim: number): Computed {
  const parameters = ropeParameters(config);
  if (!parameters || ropeType(parameters) !== "llama3") return {};
  const base = ropeBase(config);
  const factor = parameters.number("factor");
  const low = parameters.number("low_freq_factor", 1);
  const high = parameters.number("high_freq_factor", 4);
  const ctxLenOrig = parameters.findCount("original_max_position_embeddings") ?? 8192;
  const factors = Float32Array.from({ length: headDim / 2 }, (_, i) => {
    const waveLen = 2 * Math.PI * base ** ((2 * i) / headDim);
    if (waveLen < ctxLenOrig / high) return 1;
    if (waveLen > ctxLenOrig / low) return factor;
    const smooth = (ctxLenOrig / waveLen - low) / (high - low);
    return 1 / ((1 - smooth) / factor + smooth);
  });
  return { rope_freqs: factors };
}

export const isLongRope = (config: Config): boolean => ["su", "longrope"].includes(ropeType(ropeParameters(config)));

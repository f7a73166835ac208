/**
 * RoPE of an architecture, from its metadata and tensors. Ported from llama.cpp: load_hparams (llama-model.cpp), the
 * YaRN magnitudes of llama_context's constructor, and `get_rope_factors`.
 */
import type { RopeScaling } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import type { Model } from "./model.ts";

const SCALING_TYPES = ["none", "linear", "yarn", "longrope"];

interface RopeOptions {
  readonly style: RopeScaling["style"];
  /** Reads `yarn_log_multiplier`, as only some architectures do. */
  readonly logMultiplier?: boolean;
  /** Reads `rope.dimension_sections`, the assignment of time, height and width to pairs, in runs or interleaved. */
  readonly sections?: "runs" | "interleaved";
  /** Reads frequency factors, as most architectures do. */
  readonly factors?: boolean;
}

/** The scaled RoPE of a model's (global) layers. */
export function ropeOf(model: Model, options: RopeOptions): RopeScaling {
  const { style, logMultiplier = false } = options;
  const { keys, headDim, path } = model;
  const type = keys.text("rope.scaling.type", "linear");
  if (!SCALING_TYPES.includes(type)) {
    const expected = `one of ${SCALING_TYPES.join(", ")}`;
    throw new AppError("unsupported", `${path}: '${keys.arch}.rope.scaling.type': expected ${expected}, got '${type}'`);
  }
  const factor = keys.number("rope.scaling.factor", keys.number("rope.scale_linear", 0));
  const freqScale = type === "none" || factor === 0 ? 1 : 1 / factor;
  const given = keys.number("rope.scaling.yarn_ext_factor", -1);
  const extFactor = given >= 0 ? given : type === "yarn" ? 1 : 0;
  const logMul = logMultiplier ? keys.number("rope.scaling.yarn_log_multiplier", 0) : 0;
  const magnitude =
    extFactor === 0 ? keys.number("rope.scaling.yarn_attn_factor", 1) : yarnMagnitude(freqScale, logMul);
  const rotaryDim = keys.count("rope.dimension_count", { min: 2, max: headDim, fallback: headDim });
  const factors = (options.factors ?? true) ? factorsOf(model, rotaryDim, { long: type === "longrope" }) : {};
  const sections =
    options.sections && sectionsOf(model, { rotaryDim, interleaved: options.sections === "interleaved" });
  return checkedRope(model, {
    base: keys.number("rope.freq_base", 10_000),
    rotaryDim,
    style,
    freqScale,
    extFactor,
    attnFactor: magnitude * keys.number("rope.scaling.attn_factor", 1),
    betaFast: keys.number("rope.scaling.yarn_beta_fast", 32),
    betaSlow: keys.number("rope.scaling.yarn_beta_slow", 1),
    ctxLenOrig: keys.number("rope.scaling.original_context_length", model.ctxLen),
    ...(!keys.flag("rope.scaling.yarn_truncate", true) && { exactEnds: true }),
    ...factors,
    ...(sections && { sections }),
  });
}

/** The assignment of a row's positions to pairs; undefined if the file has one position for all. */
function sectionsOf(
  { keys, path }: Model,
  { rotaryDim, interleaved }: { rotaryDim: number; interleaved: boolean },
): RopeScaling["sections"] {
  const stored = keys.find("rope.dimension_sections");
  if (typeof stored !== "object") return undefined;
  const [time = 0, height = 0, width = 0] = Array.from(stored, Number);
  if (time + height + width === 0) return undefined;
  if (time + height + width >= rotaryDim / 2) return { pairs: [time, height, width], interleaved };
  const expected = `together at least ${rotaryDim / 2}`;
  const got = [time, height, width].join(", ");
  throw new AppError(
    "unsupported",
    `${path}: '${keys.arch}.rope.dimension_sections': expected ${expected}, got ${got}`,
  );
}

/** RoPE of layers with a window: scaled like the other layers' RoPE, with its own base and width. */
export function windowRope(model: Model, rope: RopeScaling): RopeScaling {
  const { keys, headDim } = model;
  const base = keys.number("rope.freq_base_swa", rope.base);
  const rotaryDim = keys.count("rope.dimension_count_swa", { min: 2, max: headDim, fallback: rope.rotaryDim });
  return checkedRope(model, { ...rope, base, rotaryDim });
}

/** Unscaled RoPE of local layers: the model's, with its own base and possibly width. */
export function localRope(
  model: Model,
  rope: RopeScaling,
  own: { readonly base: number; readonly rotaryDim?: number },
): RopeScaling {
  const { freqFactors: _, freqFactorsLong: __, ...plain } = rope;
  return checkedRope(model, { ...plain, ...own, freqScale: 1, extFactor: 0, attnFactor: 1 });
}

/** The intended attention factor, divided by the factor that RoPE itself applies. */
function yarnMagnitude(freqScale: number, logMul: number): number {
  const factor = 1 / freqScale;
  const scaleOf = (mul: number): number => (factor <= 1 ? 1 : 0.1 * mul * Math.log(factor) + 1);
  const wanted = logMul === 0 ? scaleOf(1) : scaleOf(1) / scaleOf(logMul);
  return wanted / (1 + 0.1 * Math.log(factor));
}

/** Divisors of the frequencies: `rope_freqs`, or a short and a long set of longrope. */
function factorsOf(
  model: Model,
  rotaryDim: number,
  { long }: { long: boolean },
): Pick<RopeScaling, "freqFactors" | "freqFactorsLong"> {
  const freqFactors = long ? undefined : model.values("rope_freqs", rotaryDim / 2);
  if (freqFactors) return { freqFactors };
  const short = model.values("rope_factors_short", rotaryDim / 2);
  const extended = model.values("rope_factors_long", rotaryDim / 2);
  return { ...(short && { freqFactors: short }), ...(extended && { freqFactorsLong: extended }) };
}

/** Refuses parameters that give NaN or infinite angles. */
export function checkedRope(model: Model, rope: RopeScaling): RopeScaling {
  const wrong = (what: string): AppError => new AppError("bad_file", `${model.path}: rotary embedding: ${what}`);
  if (rope.rotaryDim % 2 !== 0) throw wrong(`expected an even number of dimensions, got ${rope.rotaryDim}`);
  if (!(rope.base > 0)) throw wrong(`expected a base above 0, got ${rope.base}`);
  if (!(rope.freqScale > 0 && rope.freqScale < Infinity))
    throw wrong(`expected a factor above 0, got ${1 / rope.freqScale}`);
  if (!(rope.ctxLenOrig > 0)) throw wrong(`expected an original context above 0, got ${rope.ctxLenOrig}`);
  for (const factor of [...(rope.freqFactors ?? []), ...(rope.freqFactorsLong ?? [])]) {
    if (!Number.isFinite(factor) || factor === 0) throw wrong(`expected frequency factors other than 0, got ${factor}`);
  }
  return rope;
}

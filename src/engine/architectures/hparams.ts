/**
 * Hyperparameters from GGUF metadata, each checked against a named bound before any allocation. Keys and defaults are
 * llama.cpp's (llama-arch.cpp LLM_KV_NAMES, llama-model.cpp load_hparams).
 */
import { AppError } from "../../base/index.ts";
import type { Gguf, MetadataValue } from "../formats/gguf/gguf.ts";

/** LLAMA_MAX_LAYERS of llama.cpp. */
export const LAYERS_MAX = 512;
/** LLAMA_MAX_EXPERTS of llama.cpp. */
const EXPERTS_MAX = 512;
/**
 * Limits are four times the maximum of any published model (128 heads of 128, 16,384 dimensions, 53,248 in the MLP).
 */
const HEADS_MAX = 512;
export const HEAD_DIM_MAX = 2048;
const DIM_MAX = 65_536;
const FFN_DIM_MAX = 262_144;
/** Taps of a convolution: published models have 3 or 4. */
export const CONV_KERNEL_MAX = 64;
/** Positions are exact in float32 up to this number. */
export const CTX_LEN_MAX = 2 ** 24;

export interface Hparams {
  readonly nLayers: number;
  readonly dim: number;
  readonly ffnDim: number;
  readonly nHeads: number;
  readonly nKvHeads: number;
  readonly headDim: number;
  /** Context length of training. */
  readonly ctxLen: number;
  /** Epsilon of all norms, or of the RMS norms if the file separates them. */
  readonly eps: number;
  /** Epsilon of layer norms. */
  readonly layerEps: number;
  /** 0 for a dense model. */
  readonly nExperts: number;
  readonly nExpertsUsed: number;
}

interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly fallback?: number;
}

/** Metadata of one file, under its architecture's name. Every error names the file and the key. */
export interface Keys {
  /** `general.architecture` */
  readonly arch: string;
  /** A finite number; required unless there is a fallback. */
  number(key: string, fallback?: number): number;
  /** A whole number of `min` … `max`. */
  count(key: string, bounds: Bounds): number;
  /** A whole number of `min` … `max` per layer, (nLayers): one for all, or a list of at least nLayers. */
  counts(key: string, bounds: Bounds, nLayers: number): number[];
  /** A finite number per layer, (nLayers): one for all, or a list of at least nLayers. */
  numbers(key: string, fallback: number, nLayers: number): number[];
  text(key: string, fallback: string): string;
  flag(key: string, fallback: boolean): boolean;
  /** The value under the key, of any type. */
  find(key: string): MetadataValue | undefined;
  /** Keys with these prefixes that were never read, with their values. */
  unread(prefixes: readonly string[]): readonly (readonly [string, MetadataValue])[];
}

/** Keys that files have without the architecture's name as a prefix. */
const BARE = /^xielu\./;

export function keysOf(gguf: Gguf, arch: string): Keys {
  const asked = new Set<string>();
  const whole = (key: string): string => (BARE.test(key) ? key : `${arch}.${key}`);
  const find = (key: string): MetadataValue | undefined => {
    asked.add(key);
    return gguf.metadata.get(whole(key));
  };
  const wrong = (key: string, expected: string, got: unknown): AppError =>
    new AppError("bad_file", `${gguf.path}: '${whole(key)}': expected ${expected}, got ${describe(got)}`);
  const number = (key: string, fallback?: number): number => {
    const value = find(key) ?? fallback;
    if (typeof value !== "number" || !Number.isFinite(value)) throw wrong(key, "a number", value);
    return value;
  };
  return {
    arch,
    find,
    unread(prefixes) {
      const own = [...gguf.metadata].flatMap(([name, value]) =>
        name.startsWith(`${arch}.`) ? [[name.slice(arch.length + 1), value] as const] : [],
      );
      return own.filter(([key]) => !asked.has(key) && prefixes.some((prefix) => key.startsWith(prefix)));
    },
    number,
    count(key, { min, max, fallback }) {
      // Some writers store one value per layer; equal ones mean a single value.
      const value = uniform(find(key)) ?? fallback;
      if (typeof value !== "number" || !Number.isInteger(value) || value < min || value > max) {
        throw wrong(key, `a whole number of ${min} … ${max}`, value);
      }
      return value;
    },
    counts(key, { min, max, fallback }, nLayers) {
      const value = find(key) ?? fallback;
      const list: unknown[] = typeof value === "object" ? [...value] : Array.from({ length: nLayers }, () => value);
      return Array.from({ length: nLayers }, (_, layer) => {
        const each = list[layer];
        if (typeof each === "number" && Number.isInteger(each) && each >= min && each <= max) return each;
        throw wrong(key, `a whole number of ${min} … ${max} for layer ${layer}`, each);
      });
    },
    numbers(key, fallback, nLayers) {
      const value = find(key) ?? fallback;
      return Array.from({ length: nLayers }, (_, layer) => {
        const each: unknown = typeof value === "object" ? value[layer] : value;
        if (typeof each === "number" && Number.isFinite(each)) return each;
        throw wrong(key, `a number for layer ${layer}`, each);
      });
    },
    text(key, fallback) {
      const value = find(key) ?? fallback;
      if (typeof value !== "string") throw wrong(key, "text", value);
      return value;
    },
    flag(key, fallback) {
      const value = find(key) ?? fallback;
      if (typeof value !== "boolean") throw wrong(key, "true or false", value);
      return value;
    },
  };
}

/** @param uneven layers may differ in heads and widths; returns the largest */
export function readHparams(keys: Keys, path: string, { uneven }: { uneven: boolean }): Hparams {
  return uneven ? readUneven(keys, path) : readEven(keys, path);
}

/** Sizes of the largest layer; layers without attention have no heads. */
function readUneven(keys: Keys, path: string): Hparams {
  const nLayers = layersOf(keys);
  const most = (key: string, max: number, fallback: number): number =>
    Math.max(...keys.counts(key, { min: 0, max, fallback }, nLayers));
  const dim = keys.count("embedding_length", { min: 1, max: DIM_MAX });
  const nHeads = Math.max(1, most("attention.head_count", HEADS_MAX, 0));
  const headDim = keys.count("attention.key_length", { min: 0, max: HEAD_DIM_MAX, fallback: 0 });
  const nExperts = keys.count("expert_count", { min: 0, max: EXPERTS_MAX, fallback: 0 });
  return {
    nLayers,
    dim,
    ffnDim: most("feed_forward_length", FFN_DIM_MAX, 0),
    nHeads,
    nKvHeads: Math.max(1, most("attention.head_count_kv", HEADS_MAX, nHeads)),
    headDim: headDim || Math.floor(dim / nHeads),
    ctxLen: keys.count("context_length", { min: 1, max: CTX_LEN_MAX }),
    ...epsOf(keys, path),
    nExperts,
    nExpertsUsed: nExperts > 0 ? Math.max(1, most("expert_used_count", nExperts, 0)) : 0,
  };
}

/** Layers of the model, without draft layers. */
function layersOf(keys: Keys): number {
  const all = keys.count("block_count", { min: 1, max: LAYERS_MAX });
  return all - keys.count("nextn_predict_layers", { min: 0, max: all - 1, fallback: 0 });
}

/** Heads, key heads and MLP width of each layer, (nLayers); 0 if a layer has none. */
export function readLayers(
  keys: Keys,
  { nLayers, nHeads, ffnDim }: Hparams,
): { heads: number[]; kvHeads: number[]; ffnDims: number[] } {
  return {
    heads: keys.counts("attention.head_count", { min: 0, max: HEADS_MAX, fallback: nHeads }, nLayers),
    kvHeads: keys.counts("attention.head_count_kv", { min: 0, max: HEADS_MAX, fallback: nHeads }, nLayers),
    ffnDims: keys.counts("feed_forward_length", { min: 0, max: FFN_DIM_MAX, fallback: ffnDim }, nLayers),
  };
}

/** Epsilons of RMS norms and of layer norms. */
function epsOf(keys: Keys, path: string): Pick<Hparams, "eps" | "layerEps"> {
  const ofRms = "attention.layer_norm_rms_epsilon"; // read first, because some files have both
  const ofLayerNorm = "attention.layer_norm_epsilon";
  const key = keys.find(ofRms) === undefined && keys.find(ofLayerNorm) !== undefined ? ofLayerNorm : ofRms;
  const eps = keys.number(key);
  if (eps < 0) throw new AppError("bad_file", `${path}: '${keys.arch}.${key}': expected 0 or more, got ${eps}`);
  return { eps, layerEps: key === ofLayerNorm ? eps : keys.number(ofLayerNorm, eps) };
}

/** Sizes of the recurrence of state space layers. */
export interface SsmHparams {
  readonly convKernel: number;
  readonly stateDim: number;
  readonly nGroups: number;
  readonly nHeads: number;
  readonly innerDim: number;
}

export function readSsm(keys: Keys): SsmHparams {
  return {
    convKernel: keys.count("ssm.conv_kernel", { min: 2, max: CONV_KERNEL_MAX }),
    stateDim: keys.count("ssm.state_size", { min: 1, max: HEAD_DIM_MAX }),
    nGroups: keys.count("ssm.group_count", { min: 0, max: HEADS_MAX, fallback: 1 }) || 1,
    nHeads: keys.count("ssm.time_step_rank", { min: 1, max: DIM_MAX }),
    innerDim: keys.count("ssm.inner_size", { min: 1, max: DIM_MAX }),
  };
}

function readEven(keys: Keys, path: string): Hparams {
  const dim = keys.count("embedding_length", { min: 1, max: DIM_MAX });
  const nHeads = keys.count("attention.head_count", { min: 1, max: HEADS_MAX });
  const nKvHeads = keys.count("attention.head_count_kv", { min: 1, max: nHeads, fallback: nHeads });
  if (nHeads % nKvHeads !== 0) {
    const expected = `a divisor of the ${nHeads} heads`;
    throw new AppError(
      "bad_file",
      `${path}: '${keys.arch}.attention.head_count_kv': expected ${expected}, got ${nKvHeads}`,
    );
  }
  const headDim = keys.count("attention.key_length", { min: 1, max: HEAD_DIM_MAX, fallback: Math.floor(dim / nHeads) });
  const valueDim = keys.count("attention.value_length", { min: 1, max: HEAD_DIM_MAX, fallback: headDim });
  if (valueDim !== headDim) {
    const expected = `attention.key_length, ${headDim}`;
    throw new AppError(
      "unsupported",
      `${path}: '${keys.arch}.attention.value_length': expected ${expected}, got ${valueDim}`,
    );
  }
  const nExperts = keys.count("expert_count", { min: 0, max: EXPERTS_MAX, fallback: 0 });
  return {
    nLayers: layersOf(keys),
    dim,
    ffnDim: keys.count("feed_forward_length", { min: nExperts > 0 ? 0 : 1, max: FFN_DIM_MAX, fallback: 0 }),
    nHeads,
    nKvHeads,
    headDim,
    ctxLen: keys.count("context_length", { min: 1, max: CTX_LEN_MAX }),
    ...epsOf(keys, path),
    nExperts,
    nExpertsUsed: nExperts > 0 ? keys.count("expert_used_count", { min: 1, max: nExperts }) : 0,
  };
}

/** Width of one expert's MLP. */
export function expertFfnDim(keys: Keys, { ffnDim, nExpertsUsed }: Hparams): number {
  const given = keys.count("expert_feed_forward_length", { min: 0, max: FFN_DIM_MAX, fallback: 0 });
  return given > 0 ? given : Math.floor(ffnDim / nExpertsUsed);
}

/** Width of the shared expert's MLP; 0 without one. */
export function sharedFfnDim(keys: Keys): number {
  return keys.count("expert_shared_feed_forward_length", { min: 0, max: FFN_DIM_MAX, fallback: 0 });
}

interface WindowDefaults {
  readonly window: number;
  readonly period: number;
  /** True if the first layer of each period is global, false if the last is. */
  readonly fullFirst?: boolean;
}

/**
 * The attention window of each layer, (nLayers), 0 for all positions, by the key `attention.sliding_window_pattern`: a
 * flag per layer, or a period whose last layer is global; `period` is its default. (llama_hparams::set_swa_pattern)
 */
export function readWindows(keys: Keys, { nLayers }: Hparams, defaults: WindowDefaults): number[] {
  const window = keys.count("attention.sliding_window", { min: 0, max: CTX_LEN_MAX, fallback: defaults.window });
  const stored = keys.find("attention.sliding_window_pattern");
  const flags = stored !== undefined && typeof stored === "object" && stored.length === nLayers ? stored : undefined;
  const bounds = { min: 0, max: LAYERS_MAX, fallback: defaults.period };
  const period = flags ? 0 : keys.count("attention.sliding_window_pattern", bounds);
  return Array.from({ length: nLayers }, (_, layer) => {
    const inPeriod = defaults.fullFirst ? layer % period > 0 : layer % period < period - 1;
    const slides = flags ? Boolean(flags[layer]) : period === 0 || inPeriod;
    return slides ? window : 0;
  });
}

/** The single value of a uniform array; other values unchanged. */
function uniform(value: MetadataValue | undefined): MetadataValue | undefined {
  if (typeof value !== "object" || value.length === 0) return value;
  const first = value[0];
  for (let i = 1; i < value.length; i++) if (value[i] !== first) return value;
  return first;
}

function describe(value: unknown): string {
  if (value === undefined) return "nothing";
  return typeof value === "object" ? "a list" : typeof value === "string" ? `'${value.slice(0, 40)}'` : String(value);
}

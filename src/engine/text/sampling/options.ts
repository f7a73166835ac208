/**
 * Generation options: names, types and defaults as clients send them under `options`. Sampling options change per
 * request; load options belong to a loaded model, and changing one reloads it. (Defaults are the usual ones of the
 * field.)
 */
import { AppError, isObject, unexpected } from "../../../base/index.ts";
import { parseAlgorithm, type DiffusionAlgorithm } from "./diffusion-options.ts";
import { parseLogitBias, type LogitBias } from "./logit-bias.ts";
import { parseOrder, type SamplerName } from "./sampler-order.ts";

/** All sampling options. `samplers` has their order. */
export interface SamplingOptions {
  /** −1: a random seed. */
  readonly seed: number;
  /** Tokens to generate; −1: until the model stops, −2: until the context is full. */
  readonly num_predict: number;
  /** Prompt tokens kept on a context shift; −1: all. */
  readonly num_keep: number;
  /** 0: argmax. */
  readonly temperature: number;
  /** 0: off. */
  readonly top_k: number;
  readonly top_p: number;
  readonly min_p: number;
  /** 1: off. */
  readonly tfs_z: number;
  /** 1: off. */
  readonly typical_p: number;
  /** Number of recent tokens that penalties consider; 0: off, −1: the whole context. */
  readonly repeat_last_n: number;
  readonly repeat_penalty: number;
  readonly presence_penalty: number;
  readonly frequency_penalty: number;
  /** True if penalties apply to the newline token too. */
  readonly penalize_newline: boolean;
  /** 0: off, 1: mirostat, 2: mirostat 2.0. */
  readonly mirostat: 0 | 1 | 2;
  readonly mirostat_tau: number;
  readonly mirostat_eta: number;
  readonly stop: readonly string[];
  /** Added to the logits of tokens before all other steps; empty: no change. */
  readonly logit_bias: LogitBias;
  /**
   * Maximum tokens that a draft model drafts at once; 0: none, negative: chosen by measured speed. Answers stay the
   * same.
   */
  readonly draft_num_predict: number;
  /** Keeps tokens within this many standard deviations of the largest logit; 0: off. */
  readonly top_n_sigma: number;
  /** Probability that XTC drops all likely tokens except the least likely of them; 0: off. */
  readonly xtc_probability: number;
  /** Probability from which XTC counts a token as likely; above 0.5: off. */
  readonly xtc_threshold: number;
  /** The temperature varies by this much with the entropy; 0: off. */
  readonly dynatemp_range: number;
  readonly dynatemp_exponent: number;
  /** DRY: lowers a token that continues a repetition; times `dry_base` for each token beyond the allowed length. */
  readonly dry_multiplier: number;
  /** Below 1: off. */
  readonly dry_base: number;
  readonly dry_allowed_length: number;
  /** Number of recent tokens that DRY searches; 0: off, −1: the whole context. */
  readonly dry_penalty_last_n: number;
  /** Each of these texts ends a repetition. */
  readonly dry_sequence_breakers: readonly string[];
  /** Minimum number of candidates that typical-p, top-p, min-p and XTC keep. */
  readonly min_keep: number;
  /** The samplers in their order; the others are off. Undefined: the default order. */
  readonly samplers: readonly SamplerName[] | undefined;
  /** Tokens that end answers are never chosen. */
  readonly ignore_eos: boolean;
  /** Maximum tokens of thinking, after which the thought is closed; negative: no limit. */
  readonly thinking_budget: number;
  /** Number of passes in which a diffusion model fills in its answer; 0: one per token. */
  readonly diffusion_steps: number;
  /**
   * Number of tokens per block of a diffusion model's answer; 0: the whole answer, negative: as the model was trained.
   */
  readonly diffusion_block_length: number;
  /** Ranking of the positions of a pass, of which the best are filled in first; undefined: as the model was trained. */
  readonly diffusion_algorithm: DiffusionAlgorithm | undefined;
}

export const SAMPLING_DEFAULTS: SamplingOptions = {
  seed: -1,
  num_predict: -1,
  num_keep: 4,
  temperature: 0.8,
  top_k: 40,
  top_p: 0.9,
  min_p: 0,
  tfs_z: 1,
  typical_p: 1,
  repeat_last_n: 64,
  repeat_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  penalize_newline: true,
  mirostat: 0,
  mirostat_tau: 5,
  mirostat_eta: 0.1,
  stop: [],
  logit_bias: {},
  draft_num_predict: -1,
  top_n_sigma: 0,
  xtc_probability: 0,
  xtc_threshold: 0.1,
  dynatemp_range: 0,
  dynatemp_exponent: 1,
  dry_multiplier: 0,
  dry_base: 1.75,
  dry_allowed_length: 2,
  dry_penalty_last_n: 64,
  dry_sequence_breakers: ["\n", ":", '"', "*"],
  min_keep: 0,
  samplers: undefined,
  ignore_eos: false,
  thinking_budget: -1,
  diffusion_steps: 0,
  diffusion_block_length: -1,
  diffusion_algorithm: undefined,
};

/** Options that take effect when a model is loaded. `undefined`: the server chooses. */
export interface LoadingOptions {
  readonly num_ctx?: number;
  readonly num_batch?: number;
  readonly num_gpu?: number;
  readonly main_gpu?: number;
  readonly num_thread?: number;
  readonly use_mmap?: boolean;
}

/** Options that a request or a model's parameters may set. */
export type Options = Partial<SamplingOptions> & LoadingOptions;

/** The expected JSON type of an option, in the words of the error message. */
type Kind = "integer" | "float32" | "boolean" | "array" | "object" | "order" | "algorithm";

/** Options that other servers used to accept; checked, but without effect here. */
type Retired = "numa" | "low_vram" | "f16_kv" | "logits_all" | "vocab_only" | "use_mlock";

const KINDS: Readonly<Record<keyof Required<Options> | Retired, Kind>> = {
  seed: "integer",
  num_predict: "integer",
  num_keep: "integer",
  temperature: "float32",
  top_k: "integer",
  top_p: "float32",
  min_p: "float32",
  tfs_z: "float32",
  typical_p: "float32",
  repeat_last_n: "integer",
  repeat_penalty: "float32",
  presence_penalty: "float32",
  frequency_penalty: "float32",
  penalize_newline: "boolean",
  mirostat: "integer",
  mirostat_tau: "float32",
  mirostat_eta: "float32",
  stop: "array",
  logit_bias: "object",
  num_ctx: "integer",
  num_batch: "integer",
  num_gpu: "integer",
  main_gpu: "integer",
  num_thread: "integer",
  use_mmap: "boolean",
  numa: "boolean",
  low_vram: "boolean",
  f16_kv: "boolean",
  logits_all: "boolean",
  vocab_only: "boolean",
  use_mlock: "boolean",
  draft_num_predict: "integer",
  top_n_sigma: "float32",
  xtc_probability: "float32",
  xtc_threshold: "float32",
  dynatemp_range: "float32",
  dynatemp_exponent: "float32",
  dry_multiplier: "float32",
  dry_base: "float32",
  dry_allowed_length: "integer",
  dry_penalty_last_n: "integer",
  dry_sequence_breakers: "array",
  min_keep: "integer",
  samplers: "order",
  ignore_eos: "boolean",
  thinking_budget: "integer",
  diffusion_steps: "integer",
  diffusion_block_length: "integer",
  diffusion_algorithm: "algorithm",
};

const RETIRED: ReadonlySet<string> = new Set<Retired>([
  "numa",
  "low_vram",
  "f16_kv",
  "logits_all",
  "vocab_only",
  "use_mlock",
]);

const BREAKERS_MAX = 32;
const INT32_MAX = 2 ** 31 - 1;
const INT64_MAX = 2 ** 63; // 2^63 − 1 is not representable in a float64
const FLOAT32_MAX = 3.4028234663852886e38;

/** Reads `options` of a request: the set options, and the unknown keys (for a warning). Nulls count as absent. */
export function parseOptions(value: unknown): { options: Options; unknown: string[] } {
  if (value === undefined || value === null) return { options: {}, unknown: [] };
  if (!isObject(value)) throw unexpected("options", "an object", value);
  const options: Record<string, unknown> = {};
  const unknown: string[] = [];
  for (const [key, given] of Object.entries(value)) {
    if (given === null || given === undefined) continue;
    const kind = Object.hasOwn(KINDS, key) ? KINDS[key as keyof typeof KINDS] : undefined; // a key of the table
    if (!kind) unknown.push(key);
    else if (RETIRED.has(key)) parseOption(key, { kind, given });
    else options[key] = parseOption(key, { kind, given });
  }
  return { options: options as Options, unknown }; // every value was checked against KINDS
}

function parseOption(key: string, { kind, given }: { kind: Kind; given: unknown }): unknown {
  switch (kind) {
    case "boolean":
      if (typeof given === "boolean") return given;
      break;
    case "float32":
      if (typeof given === "number" && Math.abs(given) <= FLOAT32_MAX) return given;
      break;
    case "integer":
      if (typeof given === "number" && Number.isFinite(given)) return parseInteger(key, Math.trunc(given));
      break;
    case "array":
      if (Array.isArray(given)) return parseStrings(key, given);
      break;
    case "object":
      return parseLogitBias(given);
    case "order":
      return parseOrder(given);
    case "algorithm":
      return parseAlgorithm(given);
    default:
      return kind satisfies never;
  }
  throw new AppError("bad_request", `option "${key}" must be of type ${kind}`);
}

/** Clamps seeds to int64 and all else to int32, where −1 and −2 keep their meaning. */
function parseInteger(key: string, value: number): number {
  const limit = key === "seed" ? INT64_MAX : INT32_MAX;
  const integer = Math.max(-limit, Math.min(limit, value)) + 0; // no −0
  if (key === "diffusion_steps" && integer < 0)
    throw new AppError("bad_request", `option "${key}" must be 0 or more, got ${integer}`);
  if (key === "mirostat") return integer === 1 || integer === 2 ? integer : 0;
  return key === "top_k" ? Math.max(0, integer) : integer;
}

function parseStrings(key: string, given: readonly unknown[]): string[] {
  if (key === "dry_sequence_breakers" && given.length > BREAKERS_MAX)
    throw new AppError("bad_request", `option "${key}" must be of at most ${BREAKERS_MAX} strings`);
  if (given.every((item) => typeof item === "string")) return [...given];
  throw new AppError("bad_request", `option "${key}" must be of an array of strings`);
}

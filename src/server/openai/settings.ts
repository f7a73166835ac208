/**
 * Converts the sampling settings of the OpenAI API, and a few extensions, to our options. Settings that a request omits
 * stay at the model's defaults.
 */
import { t, type Static } from "elysia";
import { AppError, parseKeepAlive } from "../../base/index.ts";
import type { ChatRequest, Think } from "../../runtime/portable.ts";
import { type Options, parseOptions } from "../../engine/index.ts";
import { TOP_LOGPROBS_MAX } from "../answers/logprobs.ts";
import { readLora } from "../answers/lora-fields.ts";
import { Int } from "../schema/message.ts";
import { samplingFields } from "../schema/sampling.ts";

export const settingsFields = {
  model: t.Optional(t.String()),
  stream: t.Optional(t.Boolean()),
  stream_options: t.Optional(t.Object({ include_usage: t.Optional(t.Boolean()) })),
  /** Streams report how much of the prompt is read. */
  return_progress: t.Optional(t.Boolean()),
  /** Each chunk of a stream has `timings`, not only the last. */
  timings_per_token: t.Optional(t.Boolean()),
  /** Choices for each prompt. */
  n: t.Optional(Int),
  /** Number of alternatives to report for every token of the prompt; not in streams. */
  prompt_logprobs: t.Optional(Int),
  max_tokens: t.Optional(Int),
  /** A preference: every value is valid. */
  reasoning_effort: t.Optional(t.Unknown()),
  ...samplingFields,
};

const Settings = t.Object(samplingFields);
export type Settings = Static<typeof Settings>;

const SAME_NAME = [
  "seed",
  "temperature",
  "top_p",
  "frequency_penalty",
  "presence_penalty",
  "top_k",
  "min_p",
  "repeat_penalty",
  "typical_p",
  "top_n_sigma",
  "xtc_probability",
  "xtc_threshold",
  "dynatemp_range",
  "dynatemp_exponent",
  "dry_multiplier",
  "dry_base",
  "dry_allowed_length",
  "dry_penalty_last_n",
  "dry_sequence_breakers",
  "min_keep",
  "samplers",
  "ignore_eos",
  "num_ctx",
] as const satisfies (keyof Settings & keyof Options)[];

/**
 * Named fields win over `options`. Throws `bad_request`.
 * @param maxTokens tokens to generate
 */
export function toOptions(
  settings: Settings & { readonly reasoning?: { readonly max_tokens?: number } },
  maxTokens: number | undefined,
): { options: Options; unknown: string[] } {
  const named = SAME_NAME.map((name) => [name, settings[name]] as const).filter(([, value]) => value !== undefined);
  const stop = toStop(settings.stop);
  return parseOptions({
    ...settings.options,
    ...Object.fromEntries(named),
    ...(settings.reasoning?.max_tokens === undefined ? {} : { thinking_budget: settings.reasoning.max_tokens }),
    ...(maxTokens === undefined ? {} : { num_predict: maxTokens }),
    ...(stop ? { stop } : {}),
    ...(isEmpty(settings.logit_bias) ? {} : { logit_bias: settings.logit_bias }),
  });
}

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  (typeof value === "object" && value !== null && Object.values(value).every((each) => each === null));

/** `stop` of a request. Throws `bad_request`. */
function toStop(value: unknown): string[] | undefined {
  if (value === undefined) return undefined;
  if (typeof value === "string") return [value];
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
  const wrong = Array.isArray(value) ? value.find((item) => typeof item !== "string") : value;
  throw new AppError("bad_request", `invalid type for 'stop' field: expected text or texts, got ${typeof wrong}`);
}

const EFFORTS: Readonly<Record<string, Think>> = {
  none: false,
  minimal: "low",
  low: "low",
  medium: "medium",
  high: "high",
  xhigh: "max",
  ultra: "max",
  max: "max",
};

/** Undefined: the model's default, also for an unknown effort. */
export function toThink(effort: unknown): Think | undefined {
  const name = typeof effort === "string" ? effort.toLowerCase() : "";
  return Object.hasOwn(EFFORTS, name) ? EFFORTS[name] : undefined;
}

interface Reporting {
  readonly stream?: boolean;
  readonly return_progress?: boolean;
  readonly timings_per_token?: boolean;
}

/** Events about progress and speed in the stream of an answer. */
export interface Reports {
  /** Each chunk has `timings`. */
  readonly timings: boolean;
}

/** Undefined: a stream has no reports. */
export const reportsOf = ({ stream, return_progress, timings_per_token = false }: Reporting): Reports | undefined =>
  stream && (return_progress || timings_per_token) ? { timings: timings_per_token } : undefined;

/** Asks the runtime for progress events if the stream reports them. */
export const progressOption = ({ stream, return_progress }: Reporting): Pick<ChatRequest, "reportsProgress"> =>
  stream && return_progress ? { reportsProgress: true } : {};

/** Throws `bad_request`. */
export function readPromptLogprobs({
  prompt_logprobs: count,
  stream,
}: {
  readonly prompt_logprobs?: number;
  readonly stream?: boolean;
}): Pick<ChatRequest, "promptLogprobs"> {
  if (count === undefined) return {};
  checkCount("prompt_logprobs", count);
  if (stream) throw new AppError("bad_request", "prompt_logprobs: expected no stream, which has no field for them");
  return { promptLogprobs: count };
}

/** Checks a number of alternatives. Throws `bad_request`. */
export function checkCount(name: string, count: number): void {
  if (count >= 0 && count <= TOP_LOGPROBS_MAX) return;
  throw new AppError("bad_request", `${name} must be between 0 and ${TOP_LOGPROBS_MAX}, got ${count}`);
}

type Limits = Pick<ChatRequest, "keepAliveMs" | "truncate" | "shift" | "lora">;

/**
 * Settings shared with native requests: adapters, how long the model stays loaded, and the end of the context.
 * Throws `bad_request`.
 */
export function limitsOf({ keep_alive, truncate, shift, ...more }: Settings): Limits {
  const keepAliveMs = parseKeepAlive(keep_alive);
  return {
    ...(keepAliveMs === undefined ? {} : { keepAliveMs }),
    ...(truncate === undefined ? {} : { truncate }),
    ...(shift === undefined ? {} : { shift }),
    ...readLora(more),
  };
}

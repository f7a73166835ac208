/** The body of llama-server's `POST /completion`, and its conversion to requests of the runtime. */
import { t, type Static } from "elysia";
import { AppError, isObject, unexpected } from "../../base/index.ts";
import type { Options } from "../../engine/index.ts";
import type { GenerateRequest } from "../../runtime/portable.ts";
import { TOP_LOGPROBS_MAX } from "../answers/logprobs.ts";
import { Int } from "../schema/message.ts";
import { samplingFields } from "../schema/sampling.ts";
import { toOptions } from "./settings.ts";

/** Fields of both `/completion` and `/infill`. */
export const nativeFields = {
  model: t.Optional(t.String()),
  /** Tokens to generate; −1: until the model stops. */
  n_predict: t.Optional(Int),
  stream: t.Optional(t.Boolean()),
  /** Milliseconds from the first token after which the next line is not begun. */
  t_max_predict_ms: t.Optional(t.Number()),
  /** The requested fields of the answer; `a/b` is field `b` of `a`. */
  response_fields: t.Optional(t.Array(t.String())),
  /** Number of alternatives to report for every token. */
  n_probs: t.Optional(Int),
  /** Reports probabilities in place of their logarithms. */
  post_sampling_probs: t.Optional(t.Boolean()),
  /** The answer has the ids of its tokens. */
  return_tokens: t.Optional(t.Boolean()),
  return_progress: t.Optional(t.Boolean()),
  timings_per_token: t.Optional(t.Boolean()),
  /** Prompt tokens to keep when the context is full. */
  n_keep: t.Optional(Int),
  repeat_last_n: t.Optional(Int),
  mirostat: t.Optional(Int),
  mirostat_tau: t.Optional(t.Number()),
  mirostat_eta: t.Optional(t.Number()),
  ...samplingFields,
};

const NativeFields = t.Object(nativeFields);
export type NativeFields = Static<typeof NativeFields>;

export const NativeBody = t.Object(
  {
    ...nativeFields,
    /** A text, ids of tokens, both mixed, or a list of these. */
    prompt: t.Optional(t.Unknown()),
    /** Other names of `n_predict`. */
    max_tokens: t.Optional(Int),
    max_completion_tokens: t.Optional(Int),
    /** Number of answers to each prompt; `n` is its other name. */
    n_cmpl: t.Optional(Int),
    n: t.Optional(Int),
  },
  { title: "NativeCompletionRequest" },
);
export type NativeBody = Static<typeof NativeBody>;

/** A text, or ids of tokens and texts. */
export type NativePrompt = string | readonly (number | string)[];

/** Encodes a text to ids. `isFirst`: the prompt begins with it. */
export type Encode = (text: string, isFirst: boolean) => Promise<readonly number[]>;

/** Throws `bad_request`. */
export function readNativePrompts(value: unknown): readonly NativePrompt[] {
  if (!Array.isArray(value)) return [toPrompt(value, "prompt")];
  if (value.length === 0) throw unexpected("prompt", "a text, ids of tokens, or a list of these", value);
  if (value.some((each) => typeof each === "number")) return [toPrompt(value, "prompt")];
  return value.map((each, i) => toPrompt(each, `prompt[${i}]`));
}

function toPrompt(value: unknown, path: string): NativePrompt {
  if (isObject(value)) {
    if (value["multimodal_data"] !== undefined) {
      throw new AppError("bad_request", `${path}.multimodal_data: expected no images: /v1/chat/completions takes them`);
    }
    return toPrompt(value["prompt_string"], `${path}.prompt_string`);
  }
  if (typeof value === "string") return value.toWellFormed();
  const isPart = (part: unknown): boolean =>
    typeof part === "string" || (Number.isSafeInteger(part) && Number(part) >= 0);
  if (Array.isArray(value) && value.length > 0 && value.every(isPart)) return value;
  throw unexpected(path, "a text, ids of tokens, or both mixed", value);
}

type Asked = Pick<GenerateRequest, "prompt" | "raw" | "context">;

/** The request for a prompt: no template is used. */
export async function toAsked(prompt: NativePrompt, encode: Encode): Promise<Asked> {
  if (typeof prompt === "string") return { prompt, raw: true };
  const context: number[] = [];
  // one after another, because each waits in the model's queue, which other requests need
  for (const [i, part] of prompt.entries()) {
    if (typeof part === "number") context.push(part);
    else for (const id of await encode(part, i === 0)) context.push(id);
  }
  return { prompt: "", raw: true, context };
}

const MORE = ["repeat_last_n", "mirostat", "mirostat_tau", "mirostat_eta"] as const;

/** Throws `bad_request`. */
export async function toNativeOptions(
  body: NativeFields & Pick<NativeBody, "max_tokens" | "max_completion_tokens">,
  encode: Encode,
): Promise<{ options: Options; unknown: string[] }> {
  const more = Object.fromEntries(MORE.map((name) => [name, body[name]]));
  const options = { ...body.options, ...more, ...(body.n_keep === undefined ? {} : { num_keep: body.n_keep }) };
  const biases = Array.isArray(body.logit_bias) ? { logit_bias: await toBiases(body.logit_bias, encode) } : {};
  return toOptions({ ...body, options, ...biases }, body.n_predict ?? body.max_completion_tokens ?? body.max_tokens);
}

const FORBIDDEN = -100;

/** Pairs of a token, or a text whose tokens are meant, and its bias; `false` forbids it. */
async function toBiases(pairs: readonly unknown[], encode: Encode): Promise<Record<string, unknown>> {
  const biases: Record<string, unknown> = {};
  for (const [i, pair] of pairs.entries()) {
    if (!Array.isArray(pair) || pair.length !== 2) throw unexpected(`logit_bias[${i}]`, "a token and its bias", pair);
    const [token, bias] = pair as readonly unknown[];
    const ids = typeof token === "string" ? await encode(token, false) : [token];
    for (const id of ids) biases[String(id)] = bias === false ? FORBIDDEN : bias;
  }
  return biases;
}

/** Log-probabilities of the runtime's request: also for ids of tokens. Throws `bad_request`. */
export function toLogprobs({ n_probs = 0, return_tokens }: NativeFields): Pick<GenerateRequest, "logprobs"> {
  if (n_probs < 0 || n_probs > TOP_LOGPROBS_MAX) {
    throw new AppError("bad_request", `n_probs: expected 0 to ${TOP_LOGPROBS_MAX}, got ${n_probs}`);
  }
  return n_probs > 0 || return_tokens ? { logprobs: n_probs } : {};
}

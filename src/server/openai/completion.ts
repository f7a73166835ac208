/** The body of `POST /v1/completions`, and its conversion to a runtime request. */
import { t, type Static } from "elysia";
import { AppError, unexpected } from "../../base/index.ts";
import type { GenerateRequest } from "../../runtime/portable.ts";
import { readGrammar } from "../answers/grammar-fields.ts";
import { TOP_LOGPROBS_MAX } from "../answers/logprobs.ts";
import { Int } from "../schema/message.ts";
import { settingsFields } from "./settings.ts";

export const CompletionBody = t.Object(
  {
    ...settingsFields,
    /** A text, ids of tokens, or a list of these. */
    prompt: t.Optional(t.Unknown()),
    suffix: t.Optional(t.String()),
    /** True if the answer begins with the prompt. */
    echo: t.Optional(t.Boolean()),
    best_of: t.Optional(Int),
    /** Number of alternatives to report for every token. */
    logprobs: t.Optional(Int),
  },
  { title: "CompletionRequest" },
);
export type CompletionBody = Static<typeof CompletionBody>;

/** A prompt: a text, or ids of tokens. */
export type Prompt = string | readonly number[];

type Part = Pick<GenerateRequest, "prompt" | "suffix" | "raw" | "context" | "logprobs" | "format" | "grammar">;

/**
 * The request for one of its prompts. A prompt of ids gets neither a template nor special tokens. Throws `bad_request`.
 */
export function toGenerate(body: CompletionBody, prompt: Prompt): Part {
  const { suffix, logprobs, echo, max_tokens: tokensMax } = body;
  if (logprobs !== undefined && (logprobs < 0 || logprobs > TOP_LOGPROBS_MAX)) {
    throw new AppError("bad_request", `logprobs must be between 0 and ${TOP_LOGPROBS_MAX}, got ${logprobs}`);
  }
  if (echo && logprobs !== undefined && tokensMax !== undefined && tokensMax <= 1) {
    // lm-evaluation-harness would sum an empty list, and count each answer as certain
    throw new AppError("bad_request", "logprobs: expected no echo together with it: the prompt's tokens have none");
  }
  const isText = typeof prompt === "string";
  if (suffix && !isText) throw new AppError("bad_request", "suffix: expected a prompt as text, got ids");
  return {
    ...(isText ? { prompt, raw: false } : { prompt: "", raw: true, context: prompt }),
    ...readGrammar(body),
    ...(suffix ? { suffix } : {}),
    ...(logprobs === undefined ? {} : { logprobs }),
  };
}

/** One text, a list of texts, ids of tokens, or a list of such lists. Throws `bad_request`. */
export function readPrompts(value: unknown): readonly Prompt[] {
  if (!Array.isArray(value)) return [toPrompt(value ?? "", "prompt")];
  if (value.length === 0) throw unexpected("prompt", "a text, ids of tokens, or a list of these", value);
  if (typeof value[0] === "number") return [toPrompt(value, "prompt")];
  return value.map((each, i) => toPrompt(each, `prompt[${i}]`));
}

function toPrompt(value: unknown, path: string): Prompt {
  if (typeof value === "string") return value.toWellFormed();
  const isIds = Array.isArray(value) && value.length > 0 && value.every((id) => Number.isSafeInteger(id) && id >= 0);
  if (isIds) return value;
  throw unexpected(path, "a text or ids of tokens", value);
}

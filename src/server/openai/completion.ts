/** The body of `POST /v1/completions`, and its conversion to a runtime request. */
import { t, type Static } from "elysia";
import { AppError, unexpected } from "../../base/index.ts";
import type { GenerateRequest } from "../../runtime/portable.ts";
import { readGrammar } from "../answers/grammar-fields.ts";
import { Int } from "../schema/message.ts";
import { checkCount, readPromptLogprobs, settingsFields } from "./settings.ts";

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

type Part = Pick<
  GenerateRequest,
  "prompt" | "suffix" | "raw" | "context" | "logprobs" | "endLogprobs" | "promptLogprobs" | "format" | "grammar"
>;

/**
 * The request for one of its prompts. A prompt of ids gets neither a template nor special tokens, and a text whose own
 * tokens have log-probabilities gets no template. Throws `bad_request`.
 */
export function toGenerate(body: CompletionBody, prompt: Prompt): Part {
  const { suffix, logprobs } = body;
  if (logprobs !== undefined) checkCount("logprobs", logprobs);
  const measured = measuredOf(body);
  const isMeasured = "promptLogprobs" in measured;
  const isText = typeof prompt === "string";
  if (suffix && !isText) throw new AppError("bad_request", "suffix: expected a prompt as text, got ids");
  if (suffix && isMeasured) throw new AppError("bad_request", "suffix: expected no log-probabilities of the prompt");
  return {
    ...(isText ? { prompt, raw: isMeasured } : { prompt: "", raw: true, context: prompt }),
    ...readGrammar(body),
    ...(suffix ? { suffix } : {}),
    ...(logprobs === undefined ? {} : { logprobs }),
    ...measured,
  };
}

/**
 * The settings of a request for log-probabilities of its prompt. Clients count tokens from the end of the lists, so the
 * token that ends an answer is in them, too.
 */
function measuredOf(body: CompletionBody): Pick<GenerateRequest, "promptLogprobs" | "endLogprobs"> {
  const { echo, logprobs } = body;
  const field = readPromptLogprobs(body);
  if (!echo || logprobs === undefined) return field;
  return { promptLogprobs: Math.max(logprobs, field.promptLogprobs ?? 0), endLogprobs: true };
}

/** An answer holds that many tokens of prompts and their alternatives at most: some 300 MB. */
const MEASURED_MAX = 4_000_000;

/**
 * Bounds the log-probabilities of prompts in one answer. A text has at most a token for each UTF-16 unit or so.
 * Throws `bad_request`.
 */
export function checkMeasured(prompts: readonly Prompt[], { promptLogprobs }: Pick<Part, "promptLogprobs">): void {
  if (promptLogprobs === undefined) return;
  const lengths = prompts.reduce((sum, { length }) => sum + length, 0);
  const got = lengths * (1 + promptLogprobs);
  if (got <= MEASURED_MAX) return;
  const what = `log-probabilities of prompts: ${lengths} characters or ids with ${promptLogprobs} alternatives each`;
  throw new AppError("bad_request", `${what}: expected at most ${MEASURED_MAX} in one request, got ${got}`);
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

/** The body of `POST /v1/completions`, and its conversion to a runtime request. */
import { t, type Static } from "elysia";
import { AppError } from "../../base/index.ts";
import type { GenerateRequest } from "../../runtime/portable.ts";
import { readGrammar } from "../answers/grammar-fields.ts";
import { TOP_LOGPROBS_MAX } from "../answers/logprobs.ts";
import { Int } from "../schema/message.ts";
import { checkCount, settingsFields } from "./settings.ts";

export const CompletionBody = t.Object(
  {
    ...settingsFields,
    /** A text, or a list of one. */
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

/** Throws `bad_request`. */
export function toGenerate(
  body: CompletionBody,
): Pick<GenerateRequest, "prompt" | "suffix" | "raw" | "logprobs" | "format" | "grammar"> {
  checkCount("n", body.n);
  checkCount("best_of", body.best_of);
  const { suffix, logprobs } = body;
  if (logprobs !== undefined && (logprobs < 0 || logprobs > TOP_LOGPROBS_MAX)) {
    throw new AppError("bad_request", `logprobs must be between 0 and ${TOP_LOGPROBS_MAX}, got ${logprobs}`);
  }
  return {
    prompt: toPrompt(body.prompt),
    raw: false,
    ...readGrammar(body),
    ...(suffix ? { suffix } : {}),
    ...(logprobs === undefined ? {} : { logprobs }),
  };
}

function toPrompt(value: unknown): string {
  const only: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (only === undefined) return "";
  if (typeof only === "string") return only.toWellFormed();
  const found = Array.isArray(value) ? `an array of ${value.length} items` : typeof value;
  throw new AppError("bad_request", `prompt: expected one text, got ${found}; send a request for each prompt`);
}

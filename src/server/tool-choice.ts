/** The field `tool_choice`: a word, or the tool that must be called. */
import { AppError } from "../base/errors.ts";
import type { ToolChoice } from "../runtime/runtime.ts";

const WORDS = ["auto", "none", "required"] as const;
const EXPECTED = '"auto", "none", "required" or {"type": "function", "function": {"name": "…"}}';

/** Undefined where absent. Throws `bad_request`. */
export function parseToolChoice(value: unknown): ToolChoice | undefined {
  if (value === undefined) return undefined;
  const word = WORDS.find((each) => each === value);
  if (word !== undefined) return word;
  const name = nameIn(value);
  if (name !== undefined) return { name };
  throw new AppError("bad_request", `tool_choice: expected ${EXPECTED}, got ${JSON.stringify(value).slice(0, 100)}`);
}

function nameIn(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { name, function: target } = value as { name?: unknown; function?: unknown }; // any object has no more to offer
  if (typeof name === "string") return name;
  return typeof target === "object" && target !== null
    ? nameIn({ name: (target as { name?: unknown }).name })
    : undefined; // the same
}

/** Fields of a request whose errors come before all others, because Go reads them while it decodes a body. */
import { AppError, parseKeepAlive, quoteGo } from "../base/index.ts";
import type { Think } from "../runtime/portable.ts";
import { checkTopLogprobs } from "./answers/logprobs.ts";
import type { GenerateBody } from "./schema/generate.ts";

type EarlyBody = Pick<GenerateBody, "keep_alive" | "think" | "logprobs" | "top_logprobs">;

/** Throws `bad_request`. */
export function earlySettings(body: EarlyBody): { keepAliveMs?: number; think?: Think } {
  const think = parseThink(body.think);
  const keepAliveMs = parseKeepAlive(body.keep_alive);
  checkTopLogprobs(body);
  return { ...(think === undefined ? {} : { think }), ...(keepAliveMs === undefined ? {} : { keepAliveMs }) };
}

const THINK_LEVELS = ["high", "medium", "low", "max"] as const;
const THINK_VALUES = `"high", "medium", "low", "max", true, or false`;

/** The requested thinking level; undefined if absent. */
function parseThink(value: unknown): Think | undefined {
  if (value === undefined || typeof value === "boolean") return value;
  const level = THINK_LEVELS.find((each) => each === value);
  if (level !== undefined) return level;
  if (typeof value === "string") {
    throw new AppError("bad_request", `invalid think value: ${quoteGo(value)} (must be ${THINK_VALUES})`);
  }
  throw new AppError("bad_request", `think must be a boolean or string (${THINK_VALUES})`);
}

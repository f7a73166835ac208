/** The fields of a request that say how to generate, and whose errors have wordings of their own. */
import { parseKeepAlive } from "../base/duration.ts";
import { AppError, messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { quoteGo } from "../base/quote.ts";
import type { Format, GenerateRequest, Think } from "../runtime/runtime.ts";
import { parseOptions } from "../sampling/options.ts";
import { checkTopLogprobs, wantedLogprobs } from "./logprobs.ts";
import type { GenerateBody } from "./schema/generate.ts";

/** The fields that generate and chat have both. */
type InferenceBody = Pick<
  GenerateBody,
  | "model"
  | "stream"
  | "format"
  | "options"
  | "keep_alive"
  | "think"
  | "logprobs"
  | "top_logprobs"
  | "truncate"
  | "shift"
>;

/** Fields that Go reads while it decodes the body, so that their errors come before any other. Throws `bad_request`. */
export function earlySettings(body: InferenceBody): { keepAliveMs?: number; think?: Think } {
  const keepAliveMs = parseKeepAlive(body.keep_alive);
  checkTopLogprobs(body);
  const think = parseThink(body.think);
  return { ...(think === undefined ? {} : { think }), ...(keepAliveMs === undefined ? {} : { keepAliveMs }) };
}

type LateSettings = Pick<GenerateRequest, "options" | "format" | "logprobs" | "truncate" | "shift">;

/** Throws `bad_option`. Unknown options are logged, not refused: clients send those of other servers. */
export function lateSettings(body: InferenceBody, log: Logger): LateSettings {
  const { options, unknown } = parseOptions(body.options);
  warnUnknown(log, { model: body.model, unknown });
  const format = parseFormat(body.format);
  const logprobs = wantedLogprobs(body);
  const { truncate, shift } = body;
  return {
    options,
    ...(format === undefined ? {} : { format }),
    ...(logprobs === undefined ? {} : { logprobs }),
    ...(truncate === undefined ? {} : { truncate }),
    ...(shift === undefined ? {} : { shift }),
  };
}

/** Says which options nobody knows. */
export function warnUnknown(
  log: Logger,
  { model, unknown }: { model: string | undefined; unknown: readonly string[] },
): void {
  if (unknown.length > 0) log.warn("unknown options", { model, options: unknown.slice(0, 16) });
}

/** Options of the APIs under `/v1`, which know no `bad_option`. Throws `bad_request`. */
export function readOptions(fields: object): ReturnType<typeof parseOptions> {
  try {
    return parseOptions(fields);
  } catch (error) {
    throw new AppError("bad_request", messageOf(error), { cause: error });
  }
}

/** Absent, empty, `json`, or a schema. */
function parseFormat(value: unknown): Format | undefined {
  if (value === undefined || value === "") return undefined;
  if (value === "json") return value;
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>; // JSON
  const raw = quoteGo(JSON.stringify(value));
  throw new AppError("bad_option", `invalid format: ${raw}; expected "json" or a valid JSON Schema object`);
}

const THINK_LEVELS = ["high", "medium", "low", "max"] as const;
const THINK_VALUES = `"high", "medium", "low", "max", true, or false`;

/** Whether the request asks for thinking, and how much; undefined where it does not say. */
function parseThink(value: unknown): Think | undefined {
  if (value === undefined || typeof value === "boolean") return value;
  const level = THINK_LEVELS.find((each) => each === value);
  if (level !== undefined) return level;
  if (typeof value === "string") {
    throw new AppError("bad_request", `invalid think value: ${quoteGo(value)} (must be ${THINK_VALUES})`);
  }
  throw new AppError("bad_request", `think must be a boolean or string (${THINK_VALUES})`);
}

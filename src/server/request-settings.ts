/** Generation settings of a request whose errors have texts of their own. */
import { AppError, type Logger, quoteGo, isObject } from "../base/index.ts";
import type { Format, GenerateRequest } from "../runtime/portable.ts";
import { parseOptions } from "../engine/index.ts";
import { wantedLogprobs } from "./answers/logprobs.ts";
import type { GenerateBody } from "./schema/generate.ts";
import { warnUnknown } from "./unknown-options.ts";

/** The fields that generate and chat share. */
type InferenceBody = Pick<
  GenerateBody,
  "model" | "format" | "options" | "logprobs" | "top_logprobs" | "truncate" | "shift"
>;

type LateSettings = Pick<GenerateRequest, "options" | "format" | "logprobs" | "truncate" | "shift">;

/** Throws `bad_request`. Unknown options are logged, not refused: clients send options of other servers. */
export function lateSettings(body: InferenceBody, log: Logger): LateSettings {
  const format = parseFormat(body.format);
  const logprobs = wantedLogprobs(body);
  const { options, unknown } = parseOptions(body.options);
  warnUnknown(log, { model: body.model, unknown });
  const { truncate, shift } = body;
  return {
    options,
    ...(format === undefined ? {} : { format }),
    ...(logprobs === undefined ? {} : { logprobs }),
    ...(truncate === undefined ? {} : { truncate }),
    ...(shift === undefined ? {} : { shift }),
  };
}

/** Absent, empty, `json`, or a schema. */
function parseFormat(value: unknown): Format | undefined {
  if (value === undefined || value === "") return undefined;
  if (value === "json") return value;
  if (isObject(value)) return value;
  const raw = quoteGo(JSON.stringify(value));
  throw new AppError("bad_request", `invalid format: ${raw}; expected "json" or a valid JSON Schema object`);
}

/** The fields of a native request that say how to generate. */
import { type Logger, isObject, parseKeepAlive, unexpected } from "../../base/index.ts";
import type { Format, GenerateRequest, Think } from "../../runtime/portable.ts";
import { parseOptions } from "../../engine/index.ts";
import { readGrammar } from "../answers/grammar-fields.ts";
import { readLora } from "../answers/lora-fields.ts";
import { checkTopLogprobs, wantedLogprobs } from "../answers/logprobs.ts";
import type { ChatBody } from "../schema/chat.ts";
import type { GenerateBody } from "../schema/generate.ts";
import type { inferenceFields } from "../schema/message.ts";
import { warnUnknown } from "./unknown-options.ts";

/** The shared fields of native requests, and the tools of a chat. */
type Body = Pick<GenerateBody, keyof typeof inferenceFields> & Pick<ChatBody, "tools" | "tool_choice">;

type Settings = Pick<
  GenerateRequest,
  "keepAliveMs" | "think" | "options" | "format" | "grammar" | "lora" | "logprobs" | "truncate" | "shift"
>;

/** Throws `bad_request`. Unknown options are logged, not refused: clients send options of other servers. */
export function readSettings(body: Body, log: Logger): Settings {
  const think = parseThink(body.think);
  const keepAliveMs = parseKeepAlive(body.keep_alive);
  checkTopLogprobs(body);
  const format = parseFormat(body.format);
  const logprobs = wantedLogprobs(body);
  const { options, unknown } = parseOptions(body.options);
  warnUnknown(log, { model: body.model, unknown });
  const toolCount = body.tool_choice === "none" ? 0 : body.tools?.length;
  const grammar = readGrammar(body, { format, toolCount });
  const { truncate, shift } = body;
  return {
    options,
    ...(keepAliveMs === undefined ? {} : { keepAliveMs }),
    ...(think === undefined ? {} : { think }),
    ...(format === undefined ? {} : { format }),
    ...grammar,
    ...readLora(body),
    ...(logprobs === undefined ? {} : { logprobs }),
    ...(truncate === undefined ? {} : { truncate }),
    ...(shift === undefined ? {} : { shift }),
  };
}

const THINK_LEVELS = ["high", "medium", "low", "max"] as const;

/** The thinking that the request sets; undefined: it does not set it. */
function parseThink(value: unknown): Think | undefined {
  if (value === undefined || typeof value === "boolean") return value;
  const level = THINK_LEVELS.find((each) => each === value);
  if (level === undefined) throw unexpected("think", 'true, false, "high", "medium", "low" or "max"', value);
  return level;
}

/** Absent, empty, `json`, or a schema. */
function parseFormat(value: unknown): Format | undefined {
  if (value === undefined || value === "") return undefined;
  if (value === "json" || isObject(value)) return value;
  throw unexpected("format", '"json" or a JSON schema', value);
}

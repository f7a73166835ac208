/**
 * Converts a Responses request to our chat request. Settings that a request omits stay at the model's defaults.
 * Conversations and prompts are not stored, so a request that refers to one is refused.
 */
import { AppError, optional, readFields, unexpected, type Fields } from "../../base/index.ts";
import type { ChatRequest, Format, Think } from "../../runtime/portable.ts";
import type { Options } from "../../engine/index.ts";
import type { LeftOut } from "../requests/history.ts";
import { checkTopLogprobs } from "../answers/logprobs.ts";
import { limitsOf, toOptions, toThink } from "../openai/settings.ts";
import type { ResponsesBody } from "../schema/responses.ts";
import { checkStrict } from "../answers/strict-schema.ts";
import { readGrammar } from "../answers/grammar-fields.ts";
import { readTemplateFields, thinkInTemplate } from "../answers/template-fields.ts";
import { toolFields } from "../answers/tool-choice.ts";
import { readInput, type FindItem } from "./input.ts";
import type { McpOffer } from "../answers/server-tools.ts";
import { readTools, type Tools } from "./tools.ts";

export interface Wanted {
  readonly chat: Omit<ChatRequest, "model" | "signal" | "think">;
  readonly think: Think | undefined;
  /** The effort in the request. */
  readonly effort: unknown;
  readonly tools: Tools;
  /** Dropped parts of the conversation. */
  readonly leftOut: LeftOut;
}

interface Aids {
  readonly find: FindItem;
  /** Tools that the server runs. */
  readonly offers: readonly McpOffer[];
  /** The items of the conversation that the request continues. */
  readonly history: readonly Fields[];
}

/** Throws `bad_request`. */
export function readResponsesRequest(body: ResponsesBody, { find, offers, history }: Aids): Wanted {
  refuseState(body);
  const leftOut: LeftOut = [];
  const messages = readInput(body, { find, left: leftOut, history });
  const tools = readTools(body, offers);
  const format = readFormat(body.text?.["format"]);
  const logprobs = readLogprobs(body);
  const variables = readTemplateFields(body);
  const { truncation } = body;
  if (truncation !== undefined && truncation !== "auto" && truncation !== "disabled") {
    throw unexpected("truncation", '"auto" or "disabled"', truncation);
  }
  return {
    chat: {
      messages,
      options: optionsOf(body),
      ...limitsOf(body),
      ...toolFields(tools),
      ...variables,
      ...(body.parallel_tool_calls === false ? { parallelToolCalls: false } : {}),
      ...(format === undefined ? {} : { format }),
      ...readGrammar(body, { format, toolCount: body.tool_choice === "none" ? 0 : tools.tools.length }),
      ...(logprobs === undefined ? {} : { logprobs }),
      ...(truncation === "disabled" ? { truncate: false } : {}),
    },
    think: toThink(body.reasoning?.effort) ?? thinkInTemplate(variables),
    effort: body.reasoning?.effort,
    tools,
    leftOut,
  };
}

/** Refuses a request that needs more than kept responses. */
function refuseState(body: ResponsesBody): void {
  for (const [key, instead] of [
    ["conversation", "'previous_response_id', or the whole conversation in 'input'"],
    ["prompt", "its text in 'instructions' and 'input'"],
  ] as const) {
    if (body[key] !== undefined) throw new AppError("bad_request", `${key}: not stored here; expected ${instead}`);
  }
  if (body.background) {
    throw new AppError("bad_request", "background: not supported; expected false, with or without 'stream'");
  }
}

function optionsOf(body: ResponsesBody): Options {
  const { max_output_tokens: most } = body;
  if (most !== undefined && most < 1) throw unexpected("max_output_tokens", "a number of at least 1", most);
  return toOptions(body, most).options;
}

function readFormat(value: unknown): Format | undefined {
  const format = optional(readFields)(value, "text.format");
  switch (format?.["type"]) {
    case undefined:
    case null:
    case "text":
      return undefined;
    case "json_object":
      return "json";
    case "json_schema": {
      const schema = { ...readFields(format?.["schema"], "text.format.schema") };
      checkStrict(schema, { strict: format?.["strict"], path: "text.format.schema" });
      return schema;
    }
    default:
      throw unexpected("text.format.type", '"text", "json_object" or "json_schema"', format?.["type"]);
  }
}

function readLogprobs({ top_logprobs: top = 0, include }: ResponsesBody): number | undefined {
  checkTopLogprobs({ top_logprobs: top });
  return include?.includes("message.output_text.logprobs") ? top : top || undefined;
}

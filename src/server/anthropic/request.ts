/**
 * Converts an Anthropic request to our chat request. Settings that a request omits stay at the model's defaults. Cache
 * marks, metadata and service tiers have no meaning here and are ignored.
 */
import { AppError, optional, readFields, unexpected, type Fields } from "../../base/index.ts";
import type { ChatRequest, Format, Think, Tool } from "../../runtime/portable.ts";
import { type Options, parseOptions } from "../../engine/index.ts";
import { readGrammar } from "../answers/grammar-fields.ts";
import { readTemplateFields, thinkInTemplate } from "../answers/template-fields.ts";
import { readLora } from "../answers/lora-fields.ts";
import type { McpOffer } from "../answers/server-tools.ts";
import type { LeftOut } from "../requests/history.ts";
import type { MessagesBody } from "../schema/messages.ts";
import { readConversation } from "./conversation.ts";
import { readToolChoice, readTools, type Choice } from "./tools.ts";

/** A parsed request, before the model's capabilities are known. */
export interface Wanted extends Pick<
  ChatRequest,
  "messages" | "tools" | "toolChoice" | "options" | "format" | "grammar" | "templateVariables"
> {
  /** A preference; models that cannot think ignore it. */
  readonly think?: Think;
  /** At most one tool call. */
  readonly singleCall: boolean;
  /** Types of dropped tools. */
  readonly left: readonly string[];
  /** Dropped parts of the conversation. */
  readonly leftOut: LeftOut;
}

/**
 * Throws `bad_request`.
 * @param offers tools that the server runs
 */
export function readMessagesRequest(body: MessagesBody, offers: readonly McpOffer[] = []): Wanted {
  const leftOut: LeftOut = [];
  const messages = readConversation(body, leftOut);
  const { tools, left } = readTools(body.tools ?? [], offers);
  const output = optional(readFields)(body.output_config, "output_config") ?? {};
  const variables = readTemplateFields(body);
  const think = readThinking(body.thinking, output) ?? thinkInTemplate(variables);
  const format =
    readFormat(output["format"], "output_config.format") ?? readFormat(body.output_format, "output_format");
  return {
    messages,
    left,
    leftOut,
    options: { ...optionsOf(body), ...readBudget(body.thinking) },
    ...toolFields(tools, body.tool_choice),
    ...variables,
    ...(format === undefined ? {} : { format }),
    ...readGrammar(body, { format, toolCount: tools.length }),
    ...readLora(body),
    ...(think === undefined ? {} : { think }),
  };
}

/** Throws `bad_request` if the field is missing or not a count. */
export function requireMaxTokens(body: MessagesBody): void {
  if (body.max_tokens === undefined || body.max_tokens < 1) {
    throw new AppError("bad_request", "max_tokens is required and must be positive");
  }
}

/**
 * Throws `not_found` for a request that continues a stored thread: nothing is stored here. Anthropic's SDK then sends
 * all messages.
 */
export function checkThread(body: MessagesBody): void {
  const thread = optional(readFields)(body.thread, "thread");
  if (thread?.["type"] !== "continue") return;
  const message = "thread: expected all messages, got a thread to continue, and this server keeps no threads";
  throw new AppError("not_found", message, { errorCode: "thread_not_found" });
}

/** Throws `bad_request` if there is nothing to answer. */
export function requireMessages(body: MessagesBody): void {
  if (!body.messages || body.messages.length === 0) throw new AppError("bad_request", "messages is required");
}

function toolFields(tools: readonly Tool[], choice: unknown): Pick<Wanted, "tools" | "toolChoice" | "singleCall"> {
  const chosen: Choice | undefined = optional((value) => readToolChoice(value, tools))(choice, "tool_choice");
  return {
    ...(tools.length > 0 ? { tools } : {}),
    ...(chosen ? { toolChoice: chosen.toolChoice } : {}),
    singleCall: chosen?.single ?? false,
  };
}

function optionsOf({ max_tokens, temperature, top_p, top_k, stop_sequences: stop }: MessagesBody): Options {
  const given = { num_predict: max_tokens, temperature, top_p, top_k };
  return parseOptions({ ...given, ...(stop && stop.length > 0 ? { stop } : {}) }).options;
}

/** `thinking` switches it on or off; if it leaves that open, `effort` sets the level. */
function readThinking(value: unknown, output: Fields): Think | undefined {
  const thinking = optional(readFields)(value, "thinking");
  const type = thinking?.["type"];
  if (type === "disabled") return false;
  const { effort } = output;
  switch (effort) {
    case "low":
    case "medium":
    case "high":
    case "max":
      return type === undefined || type === "adaptive" ? effort : true;
    case "xhigh":
      return type === undefined || type === "adaptive" ? "high" : true;
    default:
      return type === "enabled" ? true : undefined;
  }
}

/** The limit of thoughts. Throws `bad_request`. */
function readBudget(value: unknown): Options {
  const { type, budget_tokens: budget } = optional(readFields)(value, "thinking") ?? {};
  if (type !== "enabled" || budget === undefined || budget === null) return {};
  if (typeof budget === "number" && Number.isInteger(budget) && budget >= 0) return { thinking_budget: budget };
  throw unexpected("thinking.budget_tokens", "a whole number from 0", budget);
}

function readFormat(value: unknown, path: string): Format | undefined {
  const format = optional(readFields)(value, path);
  if (!format) return undefined;
  if (format["type"] !== "json_schema") throw unexpected(`${path}.type`, '"json_schema"', format["type"]);
  return { ...readFields(format["schema"], `${path}.schema`) };
}

/** The body of `POST /v1/chat/completions`, and what it asks of the runtime. */
import { t, type Static } from "elysia";
import { AppError } from "../../base/errors.ts";
import type { ChatRequest, Format, Tool, ToolChoice } from "../../runtime/runtime.ts";
import { checkTopLogprobs, wantedLogprobs } from "../logprobs.ts";
import { Int, Tool as ToolBody } from "../schema/message.ts";
import { MessageBody, toMessages } from "./messages.ts";
import { checkCount, settingsFields } from "./settings.ts";

export const ChatCompletionBody = t.Object(
  {
    ...settingsFields,
    messages: t.Optional(t.Array(MessageBody)),
    max_completion_tokens: t.Optional(Int),
    reasoning: t.Optional(t.Object({ effort: t.Optional(t.String()) })),
    response_format: t.Optional(t.Object({ type: t.Optional(t.String()), json_schema: t.Optional(t.Unknown()) })),
    tools: t.Optional(t.Array(ToolBody)),
    tool_choice: t.Optional(t.Unknown()),
    parallel_tool_calls: t.Optional(t.Boolean()),
    logprobs: t.Optional(t.Boolean()),
    top_logprobs: t.Optional(Int),
  },
  { title: "ChatCompletionRequest" },
);
export type ChatCompletionBody = Static<typeof ChatCompletionBody>;

type Part = Pick<ChatRequest, "messages" | "format" | "tools" | "toolChoice" | "logprobs">;

/** What is said, and what may be answered. Throws `bad_request`. */
export function toChat(body: ChatCompletionBody): Part {
  checkCount("n", body.n);
  const messages = toMessages(body.messages);
  const format = toFormat(body.response_format);
  const logprobs = toLogprobs(body);
  const { tools, choice } = toTools(body);
  return {
    messages,
    ...(format ? { format } : {}),
    ...(logprobs === undefined ? {} : { logprobs }),
    ...(tools.length > 0 ? { tools } : {}),
    ...(tools.length > 0 && choice ? { toolChoice: choice } : {}),
  };
}

function toFormat(body: ChatCompletionBody["response_format"]): Format | undefined {
  switch (body?.type) {
    case undefined:
    case "text":
      return undefined;
    case "json_object":
      return "json";
    case "json_schema": {
      const schema = isObject(body.json_schema) ? body.json_schema["schema"] : undefined;
      if (isObject(schema)) return schema;
      throw new AppError("bad_request", "response_format.json_schema.schema: expected a JSON schema");
    }
    default: {
      const expected = "expected text, json_object or json_schema";
      throw new AppError("bad_request", `response_format.type: ${expected}, got '${body?.type}'`);
    }
  }
}

function toLogprobs(body: ChatCompletionBody): number | undefined {
  checkTopLogprobs(body);
  if (body.top_logprobs && !body.logprobs) {
    throw new AppError("bad_request", "top_logprobs: expected logprobs to be true");
  }
  return wantedLogprobs(body);
}

interface Tools {
  readonly tools: readonly Tool[];
  readonly choice: ToolChoice | undefined;
}

/** The tools, and which of them may or must be called. */
function toTools(body: ChatCompletionBody): Tools {
  const tools = (body.tools ?? []).map(toTool);
  const { tool_choice: choice } = body;
  switch (choice) {
    case undefined:
    case "auto":
    case "none":
      return { tools, choice };
    case "required":
      if (tools.length === 0) throw new AppError("bad_request", "tool_choice: 'required' needs tools, got none");
      return { tools, choice };
    default:
      return isObject(choice) && choice["type"] === "allowed_tools" ? allowed(tools, choice) : named(tools, choice);
  }
}

function toTool({ type = "function", function: body = {} }: Static<typeof ToolBody>, i: number): Tool {
  if (type !== "function") throw new AppError("bad_request", `tools[${i}].type: expected function, got '${type}'`);
  if (!body.name) throw new AppError("bad_request", `tools[${i}].function.name: expected a name, got none`);
  return { type, function: { ...body, name: body.name } };
}

/** One function that must be called. */
function named(tools: readonly Tool[], choice: unknown): Tools {
  return { tools, choice: { name: nameIn(namesOf(tools), { item: choice, place: "tool_choice" }) } };
}

/** Some of the tools. */
function allowed(tools: readonly Tool[], choice: Record<string, unknown>): Tools {
  const { mode = "auto", tools: items } = isObject(choice["allowed_tools"]) ? choice["allowed_tools"] : {};
  if (!Array.isArray(items) || (mode !== "auto" && mode !== "required")) {
    const expected = "expected a mode of auto or required, and tools";
    throw new AppError("bad_request", `tool_choice.allowed_tools: ${expected}`);
  }
  const known = namesOf(tools);
  const place = (i: number): string => `tool_choice.allowed_tools.tools[${i}]`;
  const names = new Set(items.map((item, i) => nameIn(known, { item, place: place(i) })));
  return { tools: tools.filter((tool) => names.has(tool.function.name)), choice: mode };
}

const namesOf = (tools: readonly Tool[]): ReadonlySet<string> => new Set(tools.map((tool) => tool.function.name));

/** The name in `{"type":"function","function":{"name":…}}`, which must be a tool's. */
function nameIn(names: ReadonlySet<string>, { item, place }: { item: unknown; place: string }): string {
  const body = isObject(item) && isObject(item["function"]) ? item["function"] : {};
  const { name } = body;
  if (typeof name !== "string") {
    throw new AppError("bad_request", `${place}: expected none, auto, required, or a function with a name`);
  }
  if (names.has(name)) return name;
  throw new AppError("bad_request", `${place}: there is no tool '${name}'`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

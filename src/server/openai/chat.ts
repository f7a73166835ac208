/** The body of `POST /v1/chat/completions`, and its conversion to a runtime request. */
import { t, type Static } from "elysia";
import { AppError, readFields, readText, isObject } from "../../base/index.ts";
import type { ChatRequest, Format, Tool } from "../../runtime/portable.ts";
import { readTemplateFields } from "../answers/template-fields.ts";
import { readGrammar } from "../answers/grammar-fields.ts";
import { readCustomTool } from "../answers/custom-tools.ts";
import type { LeftOut } from "../requests/history.ts";
import { checkTopLogprobs, wantedLogprobs } from "../answers/logprobs.ts";
import { Int, Tool as ToolBody } from "../schema/message.ts";
import { checkStrict } from "../answers/strict-schema.ts";
import { chooseTools, toolFields, type ChoiceShape } from "../answers/tool-choice.ts";
import { functionFields } from "./functions.ts";
import { MessageBody, toMessages } from "./messages.ts";
import { settingsFields } from "./settings.ts";

/** A function, or a custom tool. */
const AnyTool = t.Object({
  ...ToolBody.properties,
  function: t.Optional(t.Object({ ...ToolBody.properties.function.properties, strict: t.Optional(t.Boolean()) })),
  custom: t.Optional(t.Unknown()),
});

export const ChatCompletionBody = t.Object(
  {
    ...settingsFields,
    messages: t.Optional(t.Array(MessageBody)),
    max_completion_tokens: t.Optional(Int),
    reasoning: t.Optional(t.Object({ effort: t.Optional(t.Unknown()), max_tokens: t.Optional(Int) })),
    response_format: t.Optional(t.Object({ type: t.Optional(t.String()), json_schema: t.Optional(t.Unknown()) })),
    ...functionFields,
    tools: t.Optional(t.Array(AnyTool)),
    tool_choice: t.Optional(t.Unknown()),
    parallel_tool_calls: t.Optional(t.Boolean()),
    /** Variables for the model's chat template. */
    chat_template_kwargs: t.Optional(t.Unknown()),
    logprobs: t.Optional(t.Boolean()),
    top_logprobs: t.Optional(Int),
    /** Answers with the prompt instead of running the model. */
    _debug_render_only: t.Optional(t.Boolean()),
  },
  { title: "ChatCompletionRequest" },
);
export type ChatCompletionBody = Static<typeof ChatCompletionBody>;

type Part = { readonly left: LeftOut } & Pick<
  ChatRequest,
  "messages" | "format" | "grammar" | "tools" | "toolChoice" | "parallelToolCalls" | "logprobs" | "templateVariables"
>;

/** Converts messages, tools and format. Throws `bad_request`. */
export function toChat(body: ChatCompletionBody): Part {
  const left: LeftOut = [];
  const messages = toMessages(body.messages, left);
  const format = toFormat(body.response_format);
  const logprobs = toLogprobs(body);
  const tools = (body.tools ?? []).map(toTool);
  return {
    messages,
    left,
    ...(format ? { format } : {}),
    ...readGrammar(body, { format, toolCount: body.tool_choice === "none" ? 0 : tools.length }),
    ...(logprobs === undefined ? {} : { logprobs }),
    ...toolFields(chooseTools(body.tool_choice, { tools, shape: CHOICE })),
    ...readTemplateFields(body),
    ...(body.parallel_tool_calls === false ? { parallelToolCalls: false } : {}),
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
      const given = isObject(body.json_schema) ? body.json_schema : {};
      const { schema, strict } = given;
      if (isObject(schema)) {
        checkStrict(schema, { strict, path: "response_format.json_schema.schema" });
        return schema;
      }
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

function toTool({ type = "function", function: body = {}, custom }: Static<typeof AnyTool>, i: number): Tool {
  if (type === "custom") {
    const path = `tools[${i}].custom`;
    return { type: "function", function: readCustomTool(readFields(custom, path), path) };
  }
  if (type !== "function") {
    throw new AppError("bad_request", `tools[${i}].type: expected function or custom, got '${type}'`);
  }
  if (!body.name) throw new AppError("bad_request", `tools[${i}].function.name: expected a name, got none`);
  const { strict, ...own } = body;
  if (own.parameters) checkStrict(own.parameters, { strict, path: `tools[${i}].function.parameters` });
  return { type, function: { ...own, name: body.name } };
}

/** Names of custom tools, whose calls are free text. */
export function customNames({ tools = [] }: ChatCompletionBody): ReadonlySet<string> {
  return new Set(tools.flatMap((tool, i) => (tool.type === "custom" ? [toTool(tool, i).function.name] : [])));
}

const CHOICE: ChoiceShape = {
  nameIn(item, path) {
    const at = `${path}.${item["type"] === "custom" ? "custom" : "function"}`;
    const target = readFields(item["type"] === "custom" ? item["custom"] : item["function"], at);
    return { name: readText(target["name"], `${at}.name`), path: `${at}.name` };
  },
  allowedKey: "allowed_tools",
};

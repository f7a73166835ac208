/**
 * Messages and tools as Go templates see them: structs with Go's field names, whose tools, arguments and properties
 * print as JSON. The fields, their order in JSON and the omission of empty fields follow `api/types.go` of the server
 * that these templates were written for; unknown schema keys are omitted too.
 */
import { isObject } from "../../../base/index.ts";
import { checkDepth, type GoList, type GoMap, type GoStruct, type GoValue, goFrom, goMap, toJson } from "./go/value.ts";
import type { PromptMessage, PromptTool, PromptToolCall } from "./messages.ts";

type Json = Record<string, unknown>;

const asObject = (value: unknown): Json => (isObject(value) ? value : {});
const asText = (value: unknown): string => (typeof value === "string" ? value : "");

const list = (items: readonly GoValue[], type: string): GoList => ({ kind: "list", items, type });

function struct(type: string, fields: Record<string, GoValue>, json: Record<string, GoValue>): GoStruct {
  return { kind: "struct", type, fields: new Map(Object.entries(fields)), json: new Map(Object.entries(json)) };
}

/** A list that JSON omits if it is empty, like nil. */
const unlessEmpty = (value: GoList): GoList | undefined => (value.items.length > 0 ? value : undefined);
const unlessNil = (value: GoValue): GoValue => value ?? undefined;

/** Prints as its JSON. */
const printsJson = <T extends GoStruct | GoMap | GoList>(value: T): T => ({ ...value, text: () => toJson(value) });

export const goMessages = (messages: readonly PromptMessage[]): GoList =>
  list(messages.map(goMessage), "[]*api.Message");

function goMessage(message: PromptMessage): GoStruct {
  const { role, content, thinking = "", images = [], tool_calls = [], tool_name = "", tool_call_id = "" } = message;
  const calls = list(tool_calls.map(goToolCall), "[]api.ToolCall");
  const fields = {
    Role: role,
    Content: content,
    Thinking: thinking,
    Images: list(
      images.map(() => list([], "api.ImageData")),
      "[]api.ImageData",
    ),
    ToolCalls: calls,
    ToolName: tool_name,
    ToolCallID: tool_call_id,
  };
  const json = {
    role,
    content,
    thinking: thinking || undefined,
    tool_calls: unlessEmpty(calls),
    tool_name: tool_name || undefined,
    tool_call_id: tool_call_id || undefined,
  };
  return struct("*api.Message", fields, json);
}

function goToolCall({ id = "", function: { index = 0, name, arguments: given } }: PromptToolCall): GoStruct {
  const args = printsJson(goFrom(given) as GoMap); // an object by its type
  const at = BigInt(Math.trunc(index));
  const fields = { Index: at, Name: name, Arguments: args };
  const target = struct("api.ToolCallFunction", fields, { index: at, name, arguments: args });
  return struct("api.ToolCall", { ID: id, Function: target }, { id: id || undefined, function: target });
}

export const goTools = (tools: readonly PromptTool[]): GoList => printsJson(list(tools.map(goTool), "api.Tools"));

function goTool(tool: PromptTool): GoStruct {
  const { name, description = "" } = tool.function;
  const parameters = goParameters(asObject(tool.function.parameters));
  const items = goFrom((tool as { items?: unknown }).items);
  const fields = { Name: name, Description: description, Parameters: parameters };
  const json = { name, description: description || undefined, parameters };
  const target = printsJson(struct("api.ToolFunction", fields, json));
  return printsJson(
    struct(
      "api.Tool",
      { Type: tool.type, Items: items, Function: target },
      { type: tool.type, items: unlessNil(items), function: target },
    ),
  );
}

function goParameters(schema: Json): GoStruct {
  const required = list(textList(schema["required"]), "[]string");
  const properties = goProperties(schema["properties"]);
  const fields = {
    Type: asText(schema["type"]),
    Defs: goFrom(schema["$defs"]),
    Items: goFrom(schema["items"]),
    Required: required,
    Properties: properties,
  };
  const json = {
    type: fields.Type,
    $defs: unlessNil(fields.Defs),
    items: unlessNil(fields.Items),
    required: unlessEmpty(required),
    properties: isObject(schema["properties"]) ? properties : null,
  };
  return printsJson(struct("api.ToolFunctionParameters", fields, json));
}

/** Properties by name; JSON null if a schema has none. */
function goProperties(schemas: unknown, depth = 0): GoMap {
  if (!isObject(schemas)) return { ...goMap([]), text: () => "null", missing: NO_PROPERTY };
  const properties = Object.entries(schemas).map(([name, schema]) => [name, goProperty(schema, depth)] as const);
  return { ...printsJson(goMap(properties)), missing: NO_PROPERTY };
}

function goProperty(given: unknown, depth: number): GoStruct {
  checkDepth(depth);
  const schema = asObject(given);
  const each = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
  const types = typeof schema["type"] === "string" ? [schema["type"]] : textList(schema["type"]);
  const nested = isObject(schema["properties"]) ? goProperties(schema["properties"], depth + 1) : undefined;
  const fields = {
    AnyOf: list(
      each(schema["anyOf"]).map((one) => goProperty(one, depth + 1)),
      "[]api.ToolProperty",
    ),
    Type: {
      ...list(types, "api.PropertyType"),
      text: () => (types.length > 1 ? `[${types.join(" ")}]` : (types[0] ?? "")),
    },
    Items: goFrom(schema["items"]),
    Description: asText(schema["description"]),
    Enum: list(
      each(schema["enum"]).map((value) => goFrom(value)),
      "[]interface {}",
    ),
    Properties: nested ?? goMap([]),
    Required: list(textList(schema["required"]), "[]string"),
  };
  const json = {
    anyOf: unlessEmpty(fields.AnyOf),
    type: types.length === 1 ? types[0] : unlessEmpty(fields.Type),
    items: unlessNil(fields.Items),
    description: fields.Description || undefined,
    enum: unlessEmpty(fields.Enum),
    properties: nested,
    required: unlessEmpty(fields.Required),
  };
  return struct("api.ToolProperty", fields, json);
}

const textList = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];

/** Go's zero value of its type. */
const NO_PROPERTY: GoStruct = goProperty({}, 0);

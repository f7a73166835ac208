/**
 * Messages and tools as Go templates see them: structs with Go's field names, whose tools, arguments and properties
 * print as JSON. The fields, their order in JSON and what is left out when empty follow `api/types.go` of the server
 * that made these templates; keys of a schema that it does not know are left out too.
 */
import { type GoList, type GoMap, type GoStruct, type GoValue, goFrom, goMap, toJson } from "./go/value.ts";
import type { PromptMessage, PromptTool, PromptToolCall } from "./messages.ts";

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const asObject = (value: unknown): Json => (isObject(value) ? value : {});
const asText = (value: unknown): string => (typeof value === "string" ? value : "");

const list = (items: readonly GoValue[], type: string): GoList => ({ kind: "list", items, type });

function struct(type: string, fields: Record<string, GoValue>, json: unknown): GoStruct {
  return { kind: "struct", type, fields: new Map(Object.entries(fields)), json: () => json };
}

/** Prints as its JSON. */
const printsJson = <T extends GoStruct | GoMap | GoList>(value: T): T => ({ ...value, text: () => toJson(value) });

export const goMessages = (messages: readonly PromptMessage[]): GoList =>
  list(messages.map(goMessage), "[]*api.Message");

function goMessage(message: PromptMessage): GoStruct {
  const { role, content, thinking = "", images = [], tool_calls = [], tool_name = "", tool_call_id = "" } = message;
  const fields = {
    Role: role,
    Content: content,
    Thinking: thinking,
    Images: list(
      images.map(() => list([], "api.ImageData")),
      "[]api.ImageData",
    ),
    ToolCalls: list(tool_calls.map(goToolCall), "[]api.ToolCall"),
    ToolName: tool_name,
    ToolCallID: tool_call_id,
  };
  const json = {
    role,
    content,
    thinking: thinking || undefined,
    tool_calls: tool_calls.length > 0 ? tool_calls.map(toolCallJson) : undefined,
    tool_name: tool_name || undefined,
    tool_call_id: tool_call_id || undefined,
  };
  return struct("*api.Message", fields, json);
}

function goToolCall(call: PromptToolCall): GoStruct {
  const { index = 0, name } = call.function;
  const args = goFrom(call.function.arguments);
  const json = toolCallJson(call);
  const fields = {
    Index: BigInt(Math.trunc(index)),
    Name: name,
    Arguments: printsJson(args as GoMap), // an object by its type
  };
  const target = struct("api.ToolCallFunction", fields, json.function);
  return struct("api.ToolCall", { ID: call.id ?? "", Function: target }, json);
}

const toolCallJson = ({ id, function: { index = 0, name, arguments: args } }: PromptToolCall) => ({
  id: id || undefined,
  function: { index, name, arguments: sortedCopy(args) },
});

/** Keys in order, at every depth: an `any` that holds an object is a Go map. */
function sortedCopy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortedCopy);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sortedCopy(value[key])]),
  );
}

export const goTools = (tools: readonly PromptTool[]): GoList => printsJson(list(tools.map(goTool), "api.Tools"));

function goTool(tool: PromptTool): GoStruct {
  const { name, description = "" } = tool.function;
  const parameters = goParameters(asObject(tool.function.parameters));
  const items = (tool as { items?: unknown }).items;
  const json = {
    name,
    description: description || undefined,
    parameters: parameters.json(),
  };
  const fields = { Name: name, Description: description, Parameters: parameters };
  const target = printsJson(struct("api.ToolFunction", fields, json));
  return printsJson(
    struct(
      "api.Tool",
      { Type: tool.type, Items: goFrom(items), Function: target },
      { type: tool.type, items, function: json },
    ),
  );
}

function goParameters(schema: Json): GoStruct {
  const required = textList(schema["required"]);
  const properties = goProperties(schema["properties"]);
  const fields = {
    Type: asText(schema["type"]),
    Defs: goFrom(schema["$defs"]),
    Items: goFrom(schema["items"]),
    Required: list(required, "[]string"),
    Properties: properties.value,
  };
  const json = {
    type: asText(schema["type"]),
    $defs: sortedCopy(schema["$defs"]),
    items: sortedCopy(schema["items"]),
    required: required.length > 0 ? required : undefined,
    properties: properties.json,
  };
  return printsJson(struct("api.ToolFunctionParameters", fields, json));
}

/** Properties by name; JSON null where a schema has none. */
function goProperties(schemas: unknown): { value: GoMap; json: Json | null } {
  if (!isObject(schemas)) return { value: { ...goMap([]), text: () => "null" }, json: null };
  const names = Object.keys(schemas).sort();
  const properties = names.map((name) => [name, goProperty(asObject(schemas[name]))] as const);
  const json = Object.fromEntries(properties.map(([name, property]) => [name, property.json()]));
  return { value: printsJson(goMap(properties)), json };
}

function goProperty(schema: Json): GoStruct {
  const anyOf = Array.isArray(schema["anyOf"]) ? schema["anyOf"].map((one) => goProperty(asObject(one))) : [];
  const types = typeof schema["type"] === "string" ? [schema["type"]] : textList(schema["type"]);
  const values = Array.isArray(schema["enum"]) ? schema["enum"] : [];
  const required = textList(schema["required"]);
  const nested = isObject(schema["properties"]) ? goProperties(schema["properties"]) : undefined;
  const fields = {
    AnyOf: list(anyOf, "[]api.ToolProperty"),
    Type: {
      ...list(types, "api.PropertyType"),
      text: () => (types.length > 1 ? `[${types.join(" ")}]` : (types[0] ?? "")),
    },
    Items: goFrom(schema["items"]),
    Description: asText(schema["description"]),
    Enum: list(
      values.map((value) => goFrom(value)),
      "[]interface {}",
    ),
    Properties: nested?.value ?? goMap([]),
    Required: list(required, "[]string"),
  };
  const json = {
    anyOf: anyOf.length > 0 ? anyOf.map((one) => one.json()) : undefined,
    type: types.length === 0 ? undefined : types.length === 1 ? types[0] : types,
    items: sortedCopy(schema["items"]),
    description: asText(schema["description"]) || undefined,
    enum: values.length > 0 ? values.map(sortedCopy) : undefined,
    properties: nested?.json,
    required: required.length > 0 ? required : undefined,
  };
  return struct("api.ToolProperty", fields, json);
}

const textList = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];

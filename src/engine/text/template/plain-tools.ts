/** Tools for templates that read parts of a schema without checking that they exist. */
import { isObject } from "../../../base/index.ts";
import type { PromptTool } from "./messages.ts";

/** Adds parameters to a tool that declares none: an object without properties. */
export const withParameters = (tool: PromptTool): PromptTool => {
  const { parameters } = tool.function;
  const given = isObject(parameters) ? parameters : {};
  return { ...tool, function: { ...tool.function, parameters: { type: "object", properties: {}, ...given } } };
};

/** Schemas that nest deeper stay unchanged. */
const DEPTH_MAX = 32;

/** Adds parameters whose schemas all have a description and at most one type. */
export const plainTool = (given: PromptTool): PromptTool => {
  const tool = withParameters(given);
  return { ...tool, function: { ...tool.function, parameters: plain(tool.function.parameters, 0) } };
};

function plain(schema: unknown, depth: number): unknown {
  if (depth > DEPTH_MAX || (!isObject(schema) && typeof schema !== "boolean")) return schema;
  if (typeof schema === "boolean") return { description: "" };
  const { type, properties, items, additionalProperties } = schema;
  const only: unknown = [type].flat().find((each) => each !== "null"); // such templates do not support null
  const inside = (value: unknown): unknown => plain(value, depth + 1);
  const { type: _, ...rest } = schema;
  return {
    description: "",
    ...rest,
    ...(only === undefined ? {} : { type: only }),
    ...(isObject(properties)
      ? { properties: Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, inside(value)])) }
      : {}),
    ...(items === undefined ? {} : { items: inside(items) }),
    ...(only === "object" ? { additionalProperties: inside(additionalProperties ?? false) } : {}),
  };
}

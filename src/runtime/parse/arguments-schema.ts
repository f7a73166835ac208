/** The parameters of a tool as the schema of its arguments. */
import { AppError, isObject } from "../../base/index.ts";
import { TOO_DEEP, tooDeepAt } from "../../engine/index.ts";

/** Parameters as the schema of an object; a tool without parameters takes no arguments. Throws `bad_request`. */
export function argumentsSchema(name: string, parameters: unknown): Record<string, unknown> {
  const schema = parameters ?? {};
  if (!isObject(schema)) {
    throw new AppError("bad_request", `tools: '${name}': parameters: expected a JSON schema, got ${typeof schema}`);
  }
  const { type = "object" } = schema;
  if (![type].flat().includes("object")) {
    throw new AppError(
      "bad_request",
      `tools: '${name}': parameters: expected type "object", got ${JSON.stringify(type)}`,
    );
  }
  const deep = tooDeepAt(schema);
  if (deep !== undefined) throw new AppError("bad_request", `tools: '${name}': parameters: ${deep}: ${TOO_DEEP}`);
  return { ...schema, type: "object", ...(declaresNothing(schema) ? { additionalProperties: false } : {}) };
}

const DECLARES = ["additionalProperties", "patternProperties", "propertyNames", "allOf", "anyOf", "oneOf", "$ref"];

const declaresNothing = (schema: Record<string, unknown>): boolean =>
  Object.keys(isObject(schema["properties"]) ? schema["properties"] : {}).length === 0 &&
  !Array.isArray(schema["required"]) &&
  DECLARES.every((key) => schema[key] === undefined);

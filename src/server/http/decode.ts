/**
 * JSON → request, by a TypeBox schema: keys match in any case, unknown keys are ignored, null is absent, and a wrong
 * type is an error that names the place. (Elysia's own validation would answer 422, and is not used.)
 */
import type { Static, TSchema } from "elysia";
import { assert, isObject, readFields, unexpected } from "../../base/index.ts";
import { decodeBase64 } from "./base64.ts";

/** The place of a value in the request; its path is built only for an error. */
interface Place {
  /** Empty at the root. */
  readonly name: string;
  readonly within: Place | undefined;
}

/** Throws `bad_request`. */
export const decode = <T extends TSchema>(schema: T, value: unknown): Static<T> =>
  // The schema guarantees the type
  decodeFields(schema, readFields(value, "request body"), { name: "", within: undefined }) as Static<T>;

function decodeFields(
  schema: TSchema,
  value: Readonly<Record<string, unknown>>,
  place: Place,
): Record<string, unknown> {
  const properties = schema["properties"] as Record<string, TSchema>; // an object schema
  const out: Record<string, unknown> = {};
  let inLower: ReadonlyMap<string, string> | undefined; // made once, for the first key that does not match exactly
  for (const [key, item] of Object.entries(value)) {
    const name = Object.hasOwn(properties, key) ? key : (inLower ??= lowerNames(properties)).get(key.toLowerCase());
    if (name === undefined || item === null) continue;
    out[name] = decodeValue(properties[name]!, item, { name, within: place });
  }
  return out;
}

/** Properties by their names in lower case, for keys in another case. */
const lowerNames = (properties: Readonly<Record<string, TSchema>>): ReadonlyMap<string, string> =>
  new Map(Object.keys(properties).map((name) => [name.toLowerCase(), name]));

const pathOf = ({ name, within }: Place): string => {
  const before = within ? pathOf(within) : "";
  return before === "" ? name : `${before}.${name}`;
};

/** The limit of a signed integer of 64 bits. */
const INTEGER_MAX = 2 ** 63;

const EXPECTED: Readonly<Record<string, string>> = {
  boolean: "true or false",
  integer: "a whole number",
  number: "a number",
  array: "an array",
  object: "an object",
  string: "a string",
};

function decodeValue(schema: TSchema, value: unknown, place: Place): unknown {
  const type = schema["type"] as string | undefined;
  switch (type) {
    case "boolean":
    case "number":
      if (typeof value === type) return value;
      break;
    case "integer":
      if (Number.isInteger(value) && Math.abs(Number(value)) <= INTEGER_MAX) return value;
      break;
    case "array":
      if (!Array.isArray(value)) break;
      return value.map((item, i) => decodeValue(schema["items"] as TSchema, item, { name: String(i), within: place }));
    case "object":
      if (schema["orText"] === true && typeof value === "string") return value;
      if (isObject(value)) return schema["properties"] ? decodeFields(schema, value, place) : value; // or an open map
      break;
    case "string":
      if (typeof value !== "string") break;
      return schema["contentEncoding"] === "base64" ? decodeBase64(value, pathOf(place)) : value.toWellFormed();
    default:
      assert(!schema["anyOf"], `${pathOf(place)}: decode does not support this schema`);
      return value; // any JSON
  }
  throw unexpected(pathOf(place), EXPECTED[type] ?? type, value);
}

/**
 * Decodes a JSON request by a TypeBox schema, with the semantics of Go's encoding/json: keys match in any case, unknown
 * keys are ignored, null is absent, and a wrong type is an error that names struct, path and type as Go does. (Elysia's
 * own validation answers 422 and is not used.)
 */
import type { Static, TSchema } from "elysia";
import { AppError, assert, isObject } from "../../base/index.ts";
import { decodeBase64 } from "./base64.ts";

/** Go's largest int plus one, because a float64 cannot hold the largest int. */
const INT64_MAX = 2 ** 63;

/** The place of a value in the request; its path is built only for errors. */
interface Place {
  /** Go's name of the struct. */
  readonly struct: string;
  /** Empty at the root. */
  readonly name: string;
  readonly within: Place | undefined;
}

/** Throws `bad_request`. The schema's `title` is the name of the struct. */
export function decode<T extends TSchema>(schema: T, value: unknown): Static<T> {
  const struct = schema.title ?? "Request";
  if (value === null) return {} as Static<T>; // every field is optional
  if (!isObject(value)) {
    throw new AppError("bad_request", `json: cannot unmarshal ${kindOf(value)} into Go value of type api.${struct}`);
  }
  const root = { struct, name: "", within: undefined };
  return decodeStruct(schema, value, root) as Static<T>; // each value passed its schema
}

function decodeStruct(schema: TSchema, value: Record<string, unknown>, place: Place): Record<string, unknown> {
  const properties = schema["properties"] as Record<string, TSchema>; // an object schema
  const out: Record<string, unknown> = {};
  let inLower: ReadonlyMap<string, string> | undefined; // made for the first key that matches no property exactly
  for (const [key, item] of Object.entries(value)) {
    const name = Object.hasOwn(properties, key) ? key : (inLower ??= lowerNames(properties)).get(key.toLowerCase());
    if (name === undefined || item === null) continue;
    out[name] = decodeValue(properties[name]!, item, { struct: place.struct, name, within: place });
  }
  return out;
}

/** Properties by lower-case name, for keys in any case. */
const lowerNames = (properties: Readonly<Record<string, TSchema>>): ReadonlyMap<string, string> =>
  new Map(Object.keys(properties).map((name) => [name.toLowerCase(), name]));

const pathOf = ({ name, within }: Place): string => {
  const before = within ? pathOf(within) : "";
  return before === "" ? name : `${before}.${name}`;
};

function decodeValue(schema: TSchema, value: unknown, place: Place): unknown {
  switch (schema["type"]) {
    case "boolean":
      if (typeof value === "boolean") return value;
      break;
    case "integer":
      if (typeof value === "number" && Number.isInteger(value) && Math.abs(value) <= INT64_MAX) return value;
      break;
    case "number":
      if (typeof value === "number") return value;
      break;
    case "array":
      if (Array.isArray(value)) return value.map((item) => decodeItem(schema["items"] as TSchema, item, place));
      break;
    case "object":
      if (schema["orText"] === true && typeof value === "string") return value;
      if (!isObject(value)) break;
      if (!schema["properties"]) return value; // an open map
      return decodeStruct(schema, value, { ...place, struct: schema["goStruct"] ?? place.struct });
    case "string":
      if (typeof value !== "string") break;
      return schema["contentEncoding"] === "base64" ? decodeBase64(value) : value.toWellFormed();
    default:
      assert(!schema["anyOf"], `${place.struct}.${pathOf(place)}: a schema that decode does not know`);
      return value; // any JSON
  }
  const kind = typeof value === "number" && schema["type"] === "integer" ? `number ${value}` : kindOf(value);
  const field = `${place.struct}.${pathOf(place)}`;
  throw new AppError(
    "bad_request",
    `json: cannot unmarshal ${kind} into Go struct field ${field} of type ${goType(schema)}`,
  );
}

/** Null in an array is the zero value. */
function decodeItem(schema: TSchema, value: unknown, place: Place): unknown {
  if (value !== null) return decodeValue(schema, value, place);
  switch (schema["type"]) {
    case "string":
      return schema["contentEncoding"] === "base64" ? new Uint8Array() : "";
    case "integer":
    case "number":
      return 0;
    case "boolean":
      return false;
    case "array":
      return [];
    default:
      return {};
  }
}

/** The Go type of a schema; `goType` overrides the rule below. */
function goType(schema: TSchema): string {
  if (schema["goType"]) return String(schema["goType"]);
  switch (schema["type"]) {
    case "boolean":
      return "bool";
    case "integer":
      return "int";
    case "number":
      return "float64";
    case "array":
      return `[]${goType(schema["items"] as TSchema)}`;
    case "object":
      return "map[string]interface {}";
    default:
      return String(schema["type"] ?? "interface {}");
  }
}

/** The name of a JSON value's type in Go's messages. */
export function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "boolean" ? "bool" : typeof value;
}

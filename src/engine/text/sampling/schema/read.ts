/**
 * Reads a client's JSON schema: size, depth, keyword types, and `$ref` targets. Errors are `bad_request` and name the
 * place as a JSON path.
 */
import { AppError, isObject, shown } from "../../../../base/index.ts";

export type Schema = Readonly<Record<string, unknown>>;

const MAX_SCHEMA_CHARS = 262_144; // a schema of 2,000 enum values has 40,000
const MAX_SCHEMA_DEPTH = 64; // nesting of schemas; generated ones reach 10

/** Throws `bad_request` with the place. */
export function failAt(path: string, message: string): never {
  throw new AppError("bad_request", `format: ${path}: ${message}`);
}

/** Checks the limits of the whole schema, and returns its text. */
export function checkSize(schema: Schema): string {
  const deep = tooDeepAt(schema);
  if (deep !== undefined) failAt(deep, TOO_DEEP);
  const text = JSON.stringify(schema);
  if (text.length > MAX_SCHEMA_CHARS)
    failAt("$", `a schema may have ${MAX_SCHEMA_CHARS} characters, got ${text.length}`);
  return text;
}

export const TOO_DEEP = `nested deeper than ${MAX_SCHEMA_DEPTH} schemas`;

/** Keywords whose value is a map of schemas, with arbitrary keys. */
export const MAPS: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "dependentSchemas",
  "$defs",
  "definitions",
]);
/** Maps of definitions, which are not part of the value's schema. */
const DEFINITIONS: ReadonlySet<string> = new Set(["$defs", "definitions"]);

/** Maximum length of a place in a message. */
const PLACE_CHARS = 200;

/**
 * The first place with too deep nesting, as a JSON path; undefined: none. Counts schemas, not the maps and lists
 * between them; counting restarts in a definition.
 */
export function tooDeepAt(schema: unknown, path = "$", depth = 1): string | undefined {
  if (typeof schema !== "object" || schema === null) return undefined;
  if (depth > MAX_SCHEMA_DEPTH) return path.length > PLACE_CHARS ? `${path.slice(0, PLACE_CHARS)}…` : path;
  for (const [key, value] of Object.entries(schema)) {
    const at = `${path}.${key}`;
    const isBetween = !Array.isArray(schema) && (Array.isArray(value) || MAPS.has(key));
    const within = isBetween && typeof value === "object" && value !== null ? Object.entries(value) : undefined;
    const below = DEFINITIONS.has(key) && path === "$" ? 1 : depth + 1;
    const deep = within
      ? within.map(([name, each]) => tooDeepAt(each, `${at}.${name}`, below)).find((found) => found !== undefined)
      : tooDeepAt(value, at, below);
    if (deep !== undefined) return deep;
  }
  return undefined;
}

export function asSchema(value: unknown, path: string): Schema | boolean {
  if (typeof value === "boolean") return value;
  if (isObject(value)) return value;
  return failAt(path, `expected a schema, got ${shown(value)}`);
}

/** A keyword that holds a map of schemas; empty where absent. */
export function mapAt(schema: Schema, key: string, path: string): Readonly<Record<string, unknown>> {
  const value = schema[key];
  if (value === undefined) return {};
  if (isObject(value)) return value;
  return failAt(`${path}.${key}`, `expected an object, got ${shown(value)}`);
}

/** A keyword that holds a list; undefined where absent. */
export function listAt(schema: Schema, key: string, path: string): readonly unknown[] | undefined {
  const value = schema[key];
  if (value === undefined || Array.isArray(value)) return value;
  return failAt(`${path}.${key}`, `expected an array, got ${shown(value)}`);
}

/** A keyword that holds strings; empty where absent. */
export function stringsAt(schema: Schema, key: string, path: string): readonly string[] {
  const list = listAt(schema, key, path) ?? [];
  return list.every((item) => typeof item === "string")
    ? list
    : failAt(`${path}.${key}`, "expected an array of strings");
}

export function stringAt(schema: Schema, key: string, path: string): string | undefined {
  const value = schema[key];
  if (value === undefined || typeof value === "string") return value;
  return failAt(`${path}.${key}`, `expected a string, got ${shown(value)}`);
}

export function numberAt(schema: Schema, key: string, path: string): number | undefined {
  const value = schema[key];
  if (value === undefined || typeof value === "number") return value;
  return failAt(`${path}.${key}`, `expected a number, got ${shown(value)}`);
}

/** A keyword that holds a count. */
export function countAt(schema: Schema, key: string, path: string): number | undefined {
  const value = numberAt(schema, key, path);
  if (value === undefined || (Number.isInteger(value) && value >= 0)) return value;
  return failAt(`${path}.${key}`, `expected a whole number from 0, got ${value}`);
}

/** The target of a local `$ref` (RFC 6901 in a fragment). */
export function resolvePointer(root: Schema, ref: unknown, path: string): unknown {
  if (typeof ref !== "string" || (ref !== "#" && !ref.startsWith("#/"))) {
    return failAt(
      `${path}.$ref`,
      `only references inside the schema ('#/…') are supported, got ${JSON.stringify(ref)?.slice(0, 80)}`,
    );
  }
  const target = targetOf(root, ref);
  return target ? target.value : failAt(`${path}.$ref`, `'${ref.slice(0, 80)}' points at nothing`);
}

/** Like `resolvePointer`, but undefined for a reference without a target or to a target outside the schema. */
export function targetOf(root: unknown, ref: string): { readonly value: unknown } | undefined {
  if (ref !== "#" && !ref.startsWith("#/")) return undefined;
  let value = root;
  for (const part of ref.split("/").slice(1)) {
    const key = decodePart(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key]; // just checked
  }
  return { value };
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Types for arguments that a format writes as bare text, from the tool's schema. */
import { isObject } from "../../base/index.ts";
import { ANNOTATIONS, targetOf } from "../../engine/index.ts";
import type { Tool } from "../requests/runtime.ts";
import { parseJson } from "./json-calls.ts";
import { literalInPython } from "./python-calls.ts";

/**
 * The value of an argument that was written as text. It stays text if the schema wants text; otherwise JSON is parsed
 * if its type is allowed. Some templates print lists and objects as Python does: these are parsed if the schema allows
 * them.
 */
export function typedValue(tools: readonly Tool[], at: { name: string; argument: string }, text: string): unknown {
  const types = typesOf(tools, at);
  if (types?.has("string") && types.size === 1) return text;
  const word = text.trim();
  const lower = word.toLowerCase();
  if (types?.has("boolean") && (lower === "true" || lower === "false")) return lower === "true";
  if (types?.has("null") && (lower === "null" || lower === "none")) return null;
  const isNested = types?.has("array") || types?.has("object");
  const value = parseJson(word) ?? (isNested ? ofType(types!, literalInPython(word)) : undefined);
  if (value === undefined) return text;
  if (types?.has("string") && !types.has(typeOf(value))) return text;
  return value;
}

/** Returns whether any text is a valid value of an argument, even one that looks like another type. */
export function takesAnyText(tools: readonly Tool[], at: { name: string; argument: string }): boolean {
  const found = schemaOf(tools, at);
  const types = found && namedTypes(found.schema, found.root);
  if (types?.size === 1) return types.has("string");
  const schema = (found && resolveSchema(found.schema, found.root)) ?? {};
  return types ? types.has("string") && isLoose(schema) : !("enum" in schema || "const" in schema);
}

/**
 * Returns whether an argument may be written with JSON strings: in a list or an object, or as a text if its schema also
 * allows other types, with constraints.
 */
export function hasJsonStrings(tools: readonly Tool[], at: { name: string; argument: string }): boolean {
  const found = schemaOf(tools, at);
  const types = found && namedTypes(found.schema, found.root);
  if (!found || !types) return false;
  if (types.has("array") || types.has("object")) return true;
  const schema = resolveSchema(found.schema, found.root) ?? {};
  return types.has("string") && types.size > 1 && !("enum" in schema || "const" in schema || isLoose(schema));
}

/** Returns whether a schema has no constraints except types that are not nested, and unions of such types. */
export function isLoose(schema: Record<string, unknown>): boolean {
  const { type, anyOf, oneOf } = schema;
  const branches = [anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list : []));
  const keys = Object.keys(schema).filter((key) => !ANNOTATIONS.has(key));
  const types = [type].flat();
  const isPlain = types.every((each) => ["string", "number", "boolean", "null", undefined].includes(each as string));
  return (
    isPlain &&
    keys.every((key) => key === "type" || key === "anyOf" || key === "oneOf") &&
    branches.every((branch) => isObject(branch) && isLoose(branch))
  );
}

const ofType = (types: ReadonlySet<string>, value: unknown): unknown => (types.has(typeOf(value)) ? value : undefined);

const typeOf = (value: unknown): string => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

/** Allowed JSON types of an argument; undefined: the schema does not say. */
function typesOf(tools: readonly Tool[], at: { name: string; argument: string }): ReadonlySet<string> | undefined {
  const found = schemaOf(tools, at);
  return found && namedTypes(found.schema, found.root);
}

/** The schema of an argument, with the one that its references point into. */
function schemaOf(tools: readonly Tool[], { name, argument }: { name: string; argument: string }) {
  const parameters = tools.find((tool) => tool.function.name === name)?.function.parameters;
  if (!isObject(parameters)) return undefined;
  const parts = partsOf(parameters, parameters);
  const declared = declaredIn(parts);
  const own = declared.has(argument) ? declared.get(argument) : parts[0]?.["additionalProperties"];
  return { schema: own, root: parameters };
}

/** Nested deeper, parts and unions are not read. */
const PARTS_DEEP = 8;

/** A schema and what `allOf` and references add to it, each once. */
export function partsOf(schema: unknown, root: unknown): Record<string, unknown>[] {
  const parts = new Set<Record<string, unknown>>();
  const add = (part: unknown, depth: number): void => {
    const own = resolveSchema(part, root);
    if (!own || depth > PARTS_DEEP || parts.has(own)) return;
    parts.add(own);
    if (Array.isArray(own["allOf"])) for (const each of own["allOf"]) add(each, depth + 1);
  };
  add(schema, 0);
  return [...parts];
}

/** The schemas of properties that the parts of a schema declare, by key. */
export const declaredIn = (parts: readonly Record<string, unknown>[]): ReadonlyMap<string, unknown> =>
  new Map(parts.flatMap(({ properties }) => (isObject(properties) ? Object.entries(properties) : [])));

/** JSON types that a schema names, integers as numbers; undefined: it also allows types that it does not name. */
export function namedTypes(schema: unknown, root: unknown): ReadonlySet<string> | undefined {
  const types = new Set<string>();
  return collectTypes(schema, root, { types, seen: new Set(), depth: 0 }) && types.size > 0 ? types : undefined;
}

/** The types found so far, and the schemas that were read for them. */
interface Found {
  readonly types: Set<string>;
  readonly seen: Set<unknown>;
  readonly depth: number;
}

/** Adds the types that a schema names; false if it allows unnamed ones. */
function collectTypes(given: unknown, root: unknown, at: Found): boolean {
  const schema = resolveSchema(given, root);
  if (!schema || at.depth > PARTS_DEEP) return false;
  if (at.seen.has(schema)) return true;
  at.seen.add(schema);
  const { type, anyOf, oneOf, enum: values } = schema;
  const branches = [anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? list : []));
  const listed = Array.isArray(values) ? values : Object.hasOwn(schema, "const") ? [schema["const"]] : [];
  for (const each of [type].flat()) if (typeof each === "string") at.types.add(each === "integer" ? "number" : each);
  if (type === undefined) for (const value of listed) at.types.add(typeOf(value));
  return branches.every((branch) => collectTypes(branch, root, { ...at, depth: at.depth + 1 }));
}

/** Maximum length of a chain of references. */
const REFS_DEEP = 8;

/** A schema, or the target of its reference; undefined: the target is not an object. */
export function resolveSchema(schema: unknown, root: unknown): Record<string, unknown> | undefined {
  let found = schema;
  for (let depth = 0; isObject(found) && typeof found["$ref"] === "string" && depth < REFS_DEEP; depth++) {
    found = targetOf(root, found["$ref"])?.value;
  }
  return isObject(found) ? found : undefined;
}

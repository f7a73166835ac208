/**
 * Merges several schemas that a value must fit at once: `allOf`, and constraints beside `anyOf` or `$ref`. Exact for
 * everything that a grammar can express; an `additionalProperties: false` closes the merged object, not each part of
 * it.
 */

import { isObject } from "../../../../base/index.ts";
import { listAt } from "./read.ts";

/** A schema without `$ref`, `allOf`, `anyOf` and `oneOf`: constraints on one value. */
export type Flat = Readonly<Record<string, unknown>>;

/** Keywords that a grammar enforces; all others are annotations, or left to the client's validator. */
const CONSTRAINTS: ReadonlySet<string> = new Set([
  "type",
  "nullable",
  "enum",
  "const",
  "properties",
  "required",
  "additionalProperties",
  "unevaluatedProperties",
  "patternProperties",
  "propertyNames",
  "minProperties",
  "maxProperties",
  "items",
  "prefixItems",
  "additionalItems",
  "minItems",
  "maxItems",
  "minLength",
  "maxLength",
  "pattern",
  "format",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "uniqueItems",
  "contains",
  "minContains",
  "maxContains",
  "unevaluatedItems",
]);

/** Excluded values: a `not` with an `enum`. Not a possible keyword of a schema. */
export const EXCLUDED = "not in";

/** Names that an object must not have: a `not` with one `required` name. Not a possible keyword of a schema either. */
export const LACKS = "lacks";

export const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"] as const;
export type Type = (typeof TYPES)[number];

type Merge = (a: unknown, b: unknown) => unknown;

const larger: Merge = (a, b) => (Number(a) >= Number(b) ? a : b);
const smaller: Merge = (a, b) => (Number(a) <= Number(b) ? a : b);
const both: Merge = (a, b) => (a === false || b === false ? false : { allOf: [a, b] });

/** Merges two values of a keyword; undefined: no value fits both. */
const MERGES: Readonly<Record<string, Merge>> = {
  type: mergeTypes,
  nullable: (a, b) => a === true && b === true,
  enum: (a, b) => commonValues(toList(a), toList(b)),
  properties: mergeMaps,
  patternProperties: mergeMaps,
  required: (a, b) => [...new Set([...toList(a), ...toList(b)])],
  additionalProperties: both,
  unevaluatedProperties: both,
  additionalItems: both,
  propertyNames: both,
  items: both,
  prefixItems: mergeTuples,
  minProperties: larger,
  maxProperties: smaller,
  minItems: larger,
  maxItems: smaller,
  minLength: larger,
  maxLength: smaller,
  minimum: larger,
  maximum: smaller,
  exclusiveMinimum: larger,
  exclusiveMaximum: smaller,
  pattern: (a, b) => (a === b ? a : undefined),
  format: (a) => a,
  multipleOf: (a, b) => commonMultiple(Number(a), Number(b)),
  uniqueItems: (a, b) => a === true || b === true,
  contains: (a, b) => ({ allOf: [a, b] }),
  minContains: larger,
  maxContains: smaller,
  unevaluatedItems: both,
  [EXCLUDED]: (a, b) => [...toList(a), ...toList(b)],
  [LACKS]: (a, b) => [...toList(a), ...toList(b)],
};

/** One schema for values that fit both; undefined if `a` and `b` contradict each other or cannot be merged. */
export function merge(left: Flat, right: Flat): Flat | undefined {
  const [a, b] = [withOthers(left, right), withOthers(right, left)];
  const out: Record<string, unknown> = { ...a };
  for (const [key, value] of Object.entries(b)) {
    const mergeOne = MERGES[key];
    const merged = Object.hasOwn(out, key) && mergeOne ? mergeOne(out[key], value) : value;
    if (merged === undefined) return undefined;
    out[key] = merged;
  }
  return withoutExcluded(out);
}

/**
 * Adds to a schema the requirements of its `items` and `additionalProperties` for properties that only the other schema
 * names. `false` adds none: it closes the merged object.
 */
function withOthers(flat: Flat, other: Flat): Flat {
  const { items, additionalProperties: pairs, prefixItems, properties } = flat;
  const out: Record<string, unknown> = { ...flat };
  const [own, more] = [prefixItems ?? [], other["prefixItems"] ?? []];
  if (items !== undefined && !Array.isArray(items) && Array.isArray(own) && Array.isArray(more)) {
    if (more.length > own.length) out["prefixItems"] = [...own, ...more.slice(own.length).map(() => items)];
  }
  if (isObject(pairs) && isObject(other["properties"])) {
    const patterns = Object.keys(isObject(flat["patternProperties"]) ? flat["patternProperties"] : {});
    const named = isObject(properties) ? properties : {};
    const added = Object.keys(other["properties"]).filter((name) => !Object.hasOwn(named, name));
    if (patterns.length === 0)
      out["properties"] = { ...named, ...Object.fromEntries(added.map((name) => [name, pairs])) };
  }
  return out;
}

/** Removes listed values that are excluded; undefined if none remains. */
function withoutExcluded(flat: Record<string, unknown>): Flat | undefined {
  const given = toList(flat["type"] ?? []);
  const isNullOut = toList(flat[EXCLUDED] ?? []).includes(null) && given.length > 1;
  const types = given.filter((type) => !(isNullOut && type === "null"));
  const isBoolean = types.length > 0 && types.every((type) => type === "boolean" || type === "null");
  if (flat[EXCLUDED] === undefined || !(flat["enum"] !== undefined || isBoolean)) {
    return isNullOut ? { ...flat, type: types } : flat;
  }
  const { [EXCLUDED]: excluded, ...rest } = flat;
  const small = types.flatMap((type) => (type === "null" ? [null] : [true, false]));
  const texts = new Set(toList(excluded).map((value) => JSON.stringify(value)));
  const left = toList(rest["enum"] ?? small).filter((value) => !texts.has(JSON.stringify(value)));
  return left.length > 0 ? { ...rest, enum: left } : undefined;
}

/** A common multiple of both, if it is easy to find. */
function commonMultiple(a: number, b: number): number {
  const [small, large] = a < b ? [a, b] : [b, a];
  const isWhole = Math.abs(large / small - Math.round(large / small)) < 1e-9;
  return isWhole || !Number.isInteger(a * b) ? large : a * b;
}

/** The values of an `enum` that have one of the types and are within the bounds. */
export function fittingValues(flat: Flat, types: readonly Type[] | undefined, path: string): readonly unknown[] {
  const isOfTypes = (value: unknown): boolean => !types || types.some((type) => isOfType(value, type));
  return (listAt(flat, "enum", path) ?? []).filter((value) => isOfTypes(value) && isWithin(value, flat));
}

export function isOfType(value: unknown, type: Type): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return isObject(value);
  return type === "integer" ? Number.isInteger(value) : typeof value === type;
}

function isWithin(value: unknown, flat: Flat): boolean {
  const within = (size: number, min: string, max: string): boolean =>
    !(size < Number(flat[min] ?? -Infinity)) && !(size > Number(flat[max] ?? Infinity));
  if (typeof value === "string") return within([...value].length, "minLength", "maxLength");
  if (Array.isArray(value)) return within(value.length, "minItems", "maxItems");
  if (typeof value !== "number") return true;
  const { exclusiveMinimum: above, exclusiveMaximum: below } = flat;
  const isInside = !(typeof above === "number" && value <= above) && !(typeof below === "number" && value >= below);
  return isInside && within(value, "minimum", "maximum");
}

/** The constraints of a schema, with `const` as an `enum` of one value. */
export function constraintsOf(schema: Flat): Flat {
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) if (CONSTRAINTS.has(key)) out[key] = value;
  if (!Object.hasOwn(out, "const")) return out;
  const { const: only, ...rest } = out;
  return Object.hasOwn(rest, "enum")
    ? { ...rest, enum: commonValues([only], toList(rest["enum"])) ?? [] }
    : { ...rest, enum: [only] };
}

const toList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);

function mergeTypes(a: unknown, b: unknown): unknown {
  const [left, right] = [toList(a), toList(b)];
  const common = left.filter((type) => right.includes(type) || (type === "integer" && right.includes("number")));
  if (left.includes("number") && right.includes("integer") && !common.includes("integer")) common.push("integer");
  return common.length > 0 ? common : undefined;
}

function commonValues(a: readonly unknown[], b: readonly unknown[]): unknown[] | undefined {
  const texts = new Set(b.map((value) => JSON.stringify(value)));
  const common = a.filter((value) => texts.has(JSON.stringify(value)));
  return common.length > 0 ? common : undefined;
}

function mergeMaps(a: unknown, b: unknown): unknown {
  if (!isObject(a)) return a; // the reader of the keyword reports the error
  if (!isObject(b)) return b;
  const out: Record<string, unknown> = { ...a };
  for (const [key, value] of Object.entries(b)) out[key] = Object.hasOwn(out, key) ? both(out[key], value) : value;
  return out;
}

function mergeTuples(a: unknown, b: unknown): unknown {
  const [left, right] = [toList(a), toList(b)];
  return Array.from({ length: Math.max(left.length, right.length) }, (_, i) =>
    i < left.length && i < right.length ? both(left[i], right[i]) : (left[i] ?? right[i]),
  );
}

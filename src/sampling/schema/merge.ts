/**
 * `allOf`, and constraints beside `anyOf` or `$ref`: several schemas that a value must fit at once, as one schema.
 * Exact for what a grammar can say; an `additionalProperties: false` closes the merged object, not each part of it.
 */

/** A schema without `$ref`, `allOf`, `anyOf` and `oneOf`: constraints on one value. */
export type Flat = Readonly<Record<string, unknown>>;

/**
 * Keywords that a grammar enforces; all others are annotations, or constraints that are left to the client's validator.
 */
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
]);

type Merge = (a: unknown, b: unknown) => unknown;

const larger: Merge = (a, b) => (Number(a) >= Number(b) ? a : b);
const smaller: Merge = (a, b) => (Number(a) <= Number(b) ? a : b);
const both: Merge = (a, b) => (a === false || b === false ? false : { allOf: [a, b] });

/** How two values of one keyword become one; undefined: no value fits both. */
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
};

/** One schema for values that fit both; undefined where `a` and `b` contradict each other or cannot be combined. */
export function merge(a: Flat, b: Flat): Flat | undefined {
  const out: Record<string, unknown> = { ...a };
  for (const [key, value] of Object.entries(b)) {
    const mergeOne = MERGES[key];
    const merged = Object.hasOwn(out, key) && mergeOne ? mergeOne(out[key], value) : value;
    if (merged === undefined) return undefined;
    out[key] = merged;
  }
  return out;
}

/** The constraints of a schema, with `const` as an `enum` of one. */
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
  if (!isMap(a)) return a; // whoever reads the keyword says what is wrong
  if (!isMap(b)) return b;
  const out: Record<string, unknown> = { ...a };
  for (const [key, value] of Object.entries(b)) out[key] = Object.hasOwn(out, key) ? both(out[key], value) : value;
  return out;
}

const isMap = (value: unknown): value is object => typeof value === "object" && value !== null && !Array.isArray(value);

function mergeTuples(a: unknown, b: unknown): unknown {
  const [left, right] = [toList(a), toList(b)];
  return Array.from({ length: Math.max(left.length, right.length) }, (_, i) =>
    i < left.length && i < right.length ? both(left[i], right[i]) : (left[i] ?? right[i]),
  );
}

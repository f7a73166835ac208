/**
 * `if`, `not`, `dependentRequired` and related keywords as unions of schemas, because a grammar can express
 * alternatives. Negation works for enumerations, types, bounds, counts and combinations of them.
 */
import { isObject } from "../../../../base/index.ts";
import { asSchema, failAt, listAt, mapAt, stringsAt, type Schema } from "./read.ts";

/** Keywords that `conditionsOf` reads. */
export const CONDITIONS: readonly string[] = ["not", "if", "dependentRequired", "dependentSchemas", "dependencies"];

const NEGATIONS_MAX = 32; // alternatives of one negation

/** A keyword as alternatives of which one must fit; undefined: a grammar cannot express it. */
interface Condition {
  readonly key: string;
  readonly anyOf: readonly unknown[] | undefined;
}

/** The requirements of a schema beyond constraints on its own value. */
export function conditionsOf(schema: Schema, path: string): Condition[] {
  const found: Condition[] = [];
  if (schema["not"] !== undefined) found.push({ key: "not", anyOf: negate(asSchema(schema["not"], `${path}.not`)) });
  const { if: when, then, else: otherwise } = schema;
  const isClosed = schema["unevaluatedItems"] !== undefined || schema["unevaluatedProperties"] !== undefined;
  if (when !== undefined && then === undefined && otherwise === undefined) {
    if (isClosed) found.push({ key: "if", anyOf: [when, true] }); // properties that `when` names count as evaluated
  } else if (when !== undefined) {
    const unfit = negate(asSchema(when, `${path}.if`));
    const fit = { allOf: [when, then ?? true] };
    const others = unfit?.map((each) => ({ allOf: [each, otherwise ?? true] }));
    found.push({ key: "if", anyOf: others && [fit, ...others] });
  }
  for (const key of ["dependentRequired", "dependentSchemas", "dependencies"]) {
    const map = mapAt(schema, key, path);
    for (const name of Object.keys(map)) found.push({ key: `${key}.${name}`, anyOf: dependent(map, name, path) });
  }
  return found;
}

/** Three alternatives: without the property, with it and its requirements, or no object. */
function dependent(map: Schema, name: string, path: string): unknown[] {
  const demand = map[name];
  if (Array.isArray(demand)) return [lacking(name), { required: [name, ...stringsAt(map, name, path)] }];
  const object = { type: "object", allOf: [{ required: [name] }, asSchema(demand, `${path}.${name}`)] };
  return [lacking(name), object, { type: TYPES.filter((type) => type !== "object") }];
}

const lacking = (name: string): Schema => ({ type: "object", not: { required: [name] } });

/** Maximum number of parts of a `oneOf` that exclude one another. */
const EXCLUSIVE_MAX = 4;

/** The parts of a `oneOf`, each excluding the others, if all of them only name required properties. */
export function onlyOne(parts: readonly unknown[]): readonly unknown[] | undefined {
  const isPlain = parts.every((part) => isObject(part) && Object.keys(part).join() === "required");
  if (!isPlain || parts.length === 1 || parts.length > EXCLUSIVE_MAX) return undefined;
  return parts.map((part, i) => ({ allOf: [part, ...parts.toSpliced(i, 1).map((other) => ({ not: other }))] }));
}

/** The name that an object must not have, if a `not` has no other content. */
export function lackedBy(schema: Schema): string | undefined {
  const not = schema["not"];
  if (!isObject(not)) return undefined;
  const keys = Object.keys(not).filter((key) => !ANNOTATIONS.has(key));
  const names = not["required"];
  if (keys.length !== 1 || !Array.isArray(names) || names.length !== 1) return undefined;
  return typeof names[0] === "string" ? names[0] : undefined;
}

const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];

/** Keywords that do not constrain a value. */
export const ANNOTATIONS: ReadonlySet<string> = new Set(
  "$schema $id $comment $defs definitions title description default examples deprecated readOnly writeOnly".split(" "),
);

type Negation = (value: unknown, schema: Schema) => readonly unknown[] | undefined;

const number =
  (key: string): Negation =>
  (value) => [{ type: "number", [key]: value }];

/** Negation of a count: nothing is below a minimum of 0. */
const count =
  (type: string, key: string, step: number): Negation =>
  (value) => {
    const bound = Number(value) + step;
    return bound < 0 ? [] : [{ type, [key]: bound }];
  };

const unlisted: Negation = (_, schema) => [{ not: { enum: schema["enum"] ?? [schema["const"]] } }];

const NEGATIONS: Readonly<Record<string, Negation>> = {
  enum: unlisted,
  const: unlisted,
  type: (value) => {
    const out = [value].flat();
    const isNumeric = out.includes("number") || out.includes("integer"); // some numbers are integers
    const rest = TYPES.filter((type) => !out.includes(type) && !(isNumeric && /^(number|integer)$/.test(type)));
    return rest.length > 0 ? [{ type: rest }] : [];
  },
  required: (value) => [value].flat().map((name) => lacking(String(name))),
  properties: (value, schema) => {
    const alternatives: unknown[] = [];
    for (const [name, inner] of Object.entries(mapAt(schema, "properties", "$"))) {
      const unfit = negate(asSchema(inner, name));
      if (!unfit) return undefined;
      alternatives.push(...unfit.map((each) => ({ type: "object", required: [name], properties: { [name]: each } })));
    }
    return alternatives;
  },
  not: (value) => [value],
  allOf: (_, schema) => unionOf((listAt(schema, "allOf", "$") ?? []).map((part) => negate(asSchema(part, "$")))),
  anyOf: noneOf("anyOf"),
  oneOf: noneOf("oneOf"),
  minimum: number("exclusiveMaximum"),
  maximum: number("exclusiveMinimum"),
  minLength: count("string", "maxLength", -1),
  maxLength: count("string", "minLength", 1),
  minItems: count("array", "maxItems", -1),
  maxItems: count("array", "minItems", 1),
  minProperties: count("object", "maxProperties", -1),
  maxProperties: count("object", "minProperties", 1),
};

function noneOf(key: string): Negation {
  return (_, schema) => {
    const unfit = (listAt(schema, key, "$") ?? []).map((part) => negate(asSchema(part, "$")));
    if (unfit.some((each) => each === undefined)) return undefined;
    if (unfit.some((each) => each!.length === 0)) return [];
    return [{ allOf: unfit.map((each) => ({ anyOf: each })) }];
  };
}

function unionOf(parts: readonly (readonly unknown[] | undefined)[]): readonly unknown[] | undefined {
  return parts.some((part) => part === undefined) ? undefined : parts.flatMap((part) => part!);
}

/**
 * Schemas such that a value fits one of them exactly if it does not fit this one; undefined if a grammar cannot express
 * that. An enumeration stays `{ not: { enum } }`.
 */
export function negate(schema: Schema | boolean): readonly unknown[] | undefined {
  if (typeof schema === "boolean") return schema ? [] : [true];
  const keys = Object.keys(schema).filter((key) => !ANNOTATIONS.has(key));
  if (keys.includes("enum") && keys.includes("const")) return undefined;
  const all = unionOf(
    keys.map((key) => (Object.hasOwn(NEGATIONS, key) ? NEGATIONS[key]!(schema[key], schema) : undefined)),
  );
  return all && all.length > NEGATIONS_MAX ? undefined : all;
}

/** The values that a `not` excludes, if it only lists values. */
export function unlistedBy(schema: Schema, path: string): readonly unknown[] | undefined {
  const not = asSchema(schema["not"] ?? {}, `${path}.not`);
  if (typeof not === "boolean") return undefined;
  const keys = Object.keys(not).filter((key) => !ANNOTATIONS.has(key));
  if (keys.length !== 1) return undefined;
  if (keys[0] === "const") return [not["const"]];
  if (keys[0] !== "enum") return undefined;
  return listAt(not, "enum", `${path}.not`) ?? failAt(`${path}.not`, "expected values");
}

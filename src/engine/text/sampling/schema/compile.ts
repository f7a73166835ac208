/**
 * Compiles a JSON schema, or "any JSON object", to a grammar (xgrammar's EBNF). The grammar is exact for types,
 * properties, `required`, `enum`, `const`, `items`, `anyOf`, `allOf`, `dependentRequired` and local `$ref`; lengths,
 * counts, bounds, patterns and formats are enforced up to a budget (`budget.ts`). `oneOf` means `anyOf`. `if`, `not`,
 * `uniqueItems`, `contains` and `multipleOf` are enforced if they reduce to a list of cases (`conditions.ts`,
 * `arrays.ts`, `multiples.ts`); otherwise `left` names them.
 *
 * Two choices where JSON Schema leaves freedom, both as in llama.cpp's `json-schema-to-grammar.cpp`: properties come in
 * the order of the schema, and an object that declares properties has no others unless `additionalProperties` says so.
 */
import { AppError } from "../../../../base/index.ts";
import { literal } from "./char-set.ts";
import { arrayGrammar } from "./arrays.ts";
import { CONDITIONS } from "./conditions.ts";
import { flatten, leave, partsOf, countSchema, type Context, type Place } from "./flatten.ts";
import { constraintsOf, EXCLUDED, fittingValues, isOfType, type Flat, type Type } from "./merge.ts";
import { numericGrammar } from "./numbers.ts";
import { objectGrammar as objectsOf } from "./objects.ts";
import { asSchema, failAt, listAt, resolvePointer, type Schema } from "./read.ts";
import { withoutNulls } from "./nulls.ts";
import { add, choice, define, makeRules, reserve, savepoint, textOf, use, type Rules } from "./rules.ts";
import { stringGrammar } from "./strings.ts";
import { constrains, typesOf } from "./types.ts";

const UNKNOWN = ["$dynamicRef", "$recursiveRef"];

export interface GrammarText {
  /** EBNF whose root rule is `root`. */
  readonly text: string;
  /** Places of unenforced keywords, except annotations and counts beyond the budget. */
  readonly left: readonly string[];
  /** True if a complete value cannot be continued, as for objects and arrays; false for a bare number. */
  readonly closes: boolean;
}

/** Any JSON object. */
export function objectGrammar(): GrammarText {
  const rules = makeRules();
  return { text: textOf(rules, use(rules, "object")), left: [], closes: true };
}

/**
 * Values that fit a schema. Throws `bad_request` naming the JSON path of an unusable part. `if`, `not` and related
 * keywords are ignored if they make it too complex or unsatisfiable.
 */
export function schemaGrammar(given: Schema): GrammarText {
  const schema = withoutNulls(given);
  try {
    return grammarOf(schema, true);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return grammarOf(schema, false);
  }
}

/**
 * An expression for the values of a schema, among the rules of a larger grammar. Throws like `schemaGrammar`, and then
 * restores the rules.
 * @param root the schema that references point into
 */
export function valueExpression(rules: Rules, given: Schema, root: Schema = given): string {
  const schema = withoutNulls(given);
  const whole = withoutNulls(root);
  const undo = savepoint(rules);
  try {
    return rootOf(contextOf(rules, whole, true), schema, ROOT);
  } catch (error) {
    undo();
    if (!(error instanceof AppError)) throw error;
    try {
      return rootOf(contextOf(rules, whole, false), schema, ROOT);
    } catch (again) {
      undo();
      throw again;
    }
  }
}

const ROOT: Place = { path: "$", within: undefined };

function contextOf(rules: Rules, root: Schema, holdsConditions: boolean): Context {
  const maps = { refs: new Map(), merged: new Map(), direct: new Map(), left: new Set<string>() };
  return { root, rules, ...maps, holdsConditions, nodes: 0, trials: 0, isConditional: false };
}

function grammarOf(schema: Schema, holdsConditions: boolean): GrammarText {
  const context = contextOf(makeRules(), schema, holdsConditions);
  const place = ROOT;
  const root = rootOf(context, schema, place);
  const closes = flatten(context, schema, { place, refs: [] }).every((flat) => {
    const types = typesOf(flat, place.path);
    return types?.every((type) => type === "object" || type === "array") === true;
  });
  return { text: textOf(context.rules, root), left: [...context.left], closes };
}

/**
 * A reference with further constraints gets no separate rule, because a reference that adds constraints at each
 * recursion would never end.
 */
function rootOf(context: Context, schema: Schema, place: Place): string {
  try {
    const root = expressionOf(context, schema, place);
    const ends = new Set<string>();
    for (const ref of context.direct.keys()) checkEnds(context, ref, { trail: new Set(), ends });
    return root;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return failAt(place.path, "nested too deeply, or a reference that leads back to itself adds constraints each time");
  }
}

function expressionOf(context: Context, value: unknown, place: Place): string {
  countSchema(context, place.path);
  const schema = asSchema(value, place.path);
  if (schema === true) return use(context.rules, "any");
  if (schema === false) return failAt(place.path, "no value fits a schema of false");
  const constraints = constraintsOf(schema);
  const combined = ["$ref", "allOf", "anyOf", "oneOf", ...CONDITIONS].filter((key) => schema[key] !== undefined);
  for (const key of UNKNOWN) if (schema[key] !== undefined) leave(context, `${place.path}.${key}`);
  if (combined.length === 0) return valueGrammar(context, constraints, place);
  if (combined.length === 1 && Object.keys(constraints).length === 0) {
    const key = combined[0]!;
    if (key === "$ref") return refRule(context, schema[key], place);
    const parts = CONDITIONS.includes(key) ? [] : [...partsOf(schema, key, place.path).entries()];
    const possible = parts.filter(([, part]) => part !== false || parts.length === 1);
    if (possible.length > 0 && (key !== "allOf" || parts.length === 1)) {
      return choice(
        possible.map(([i, part]) => expressionOf(context, part, { ...place, path: `${place.path}.${key}[${i}]` })),
      );
    }
  }
  return mergedRule(context, schema, place);
}

/** The rule of a schema with merged parts, made once. Recursion passes through an object or array. */
function mergedRule(context: Context, schema: Schema, place: Place): string {
  const key = JSON.stringify(schema);
  const known = context.merged.get(key);
  if (known !== undefined) return known;
  const branches = flatten(context, schema, { place, refs: [] });
  if (branches.length === 0) failAt(place.path, "no value fits: its parts contradict each other or cannot be combined");
  const name = reserve(context.rules);
  context.merged.set(key, name);
  add(context.rules, name, choice(branches.map((branch) => valueGrammar(context, branch, place))));
  return name;
}

/** The rule of a reference, made at first use. */
function refRule(context: Context, ref: unknown, place: Place): string {
  const target = resolvePointer(context.root, ref, place.path);
  const key = String(ref);
  if (place.within !== undefined) {
    const seen = context.direct.get(place.within) ?? new Set();
    context.direct.set(place.within, seen.add(key));
  }
  const known = context.refs.get(key);
  if (known) return known;
  const name = reserve(context.rules);
  context.refs.set(key, name);
  add(context.rules, name, expressionOf(context, target, { path: key, within: key }));
  return name;
}

/** Throws if a reference leads to itself without a value in between; `ends` collects valid references. */
function checkEnds(context: Context, ref: string, seen: { trail: Set<string>; ends: Set<string> }): void {
  const { trail, ends } = seen;
  if (ends.has(ref)) return;
  if (trail.has(ref)) failAt("$", `'${ref}' refers to itself without end`);
  trail.add(ref);
  for (const next of context.direct.get(ref) ?? []) checkEnds(context, next, seen);
  trail.delete(ref);
  ends.add(ref);
}

function valueGrammar(context: Context, flat: Flat, place: Place): string {
  const types = typesOf(flat, place.path);
  const values = listAt(flat, "enum", place.path);
  if (values) {
    const fitting = fittingValues(flat, types, place.path);
    if (fitting.length === 0) failAt(`${place.path}.enum`, "no value is listed that has the type and its bounds");
    return define(context.rules, fitting.map((value) => literal(JSON.stringify(value))).join(" | "));
  }
  if (flat[EXCLUDED] !== undefined && !holdsExcluded(flat, types)) leave(context, `${place.path}.not`);
  if (!types) return use(context.rules, "any");
  return choice(types.map((type) => typeGrammar(context, flat, { type, place })));
}

/**
 * Returns whether excluded values are enforceable: if they have types that the value cannot have, or if the value is a
 * text without counts.
 */
function holdsExcluded(flat: Flat, types: readonly Type[] | undefined): boolean {
  const isPlain = ["pattern", "format", "minLength", "maxLength"].every((key) => flat[key] === undefined);
  const excluded = flat[EXCLUDED] as readonly unknown[]; // a list: `unlistedBy` read it
  const own = excluded.filter((value) => !types || types.some((type) => isOfType(value, type)));
  return own.length === 0 || (isPlain && types !== undefined && own.every((value) => typeof value === "string"));
}

function typeGrammar(context: Context, flat: Flat, { type, place }: { type: Type; place: Place }): string {
  switch (type) {
    case "null":
      return '"null"';
    case "boolean":
      return '("true" | "false")';
    case "integer":
    case "number":
      return numericGrammar(context.rules, flat, { type, path: place.path, leave: (at) => leave(context, at) });
    case "string":
      return stringGrammar(context.rules, flat, { path: place.path, role: "value" });
    case "array":
      return constrains(flat, type) ? arrayOf(context, flat, place) : use(context.rules, type);
    case "object":
      return constrains(flat, type) ? objectOf(context, flat, place) : use(context.rules, type);
    default:
      return type satisfies never;
  }
}

function arrayOf(context: Context, flat: Flat, { path }: Place): string {
  const { rules } = context;
  const placeOf = (key: string): Place => ({ path: `${path}.${key}`, within: undefined });
  return arrayGrammar(flat, {
    rules,
    path,
    inside: (value, key) => define(rules, expressionOf(context, value, placeOf(key))),
    valuesOf: (value) => valuesOf(context, value, placeOf("items")),
    leave: (key) => leave(context, `${path}.${key}`),
  });
}

/** All values of a schema, if it lists them. */
function valuesOf(context: Context, value: unknown, place: Place): readonly unknown[] | undefined {
  const lists = flatten(context, value, { place, refs: [] }).map((flat) => {
    const types = typesOf(flat, place.path);
    if (flat["enum"] !== undefined) return fittingValues(flat, types, place.path);
    const isSmall = types?.every((type) => type === "boolean" || type === "null");
    return isSmall ? types!.flatMap((type) => (type === "null" ? [null] : [true, false])) : undefined;
  });
  return lists.includes(undefined) ? undefined : lists.flatMap((list) => list!);
}

function objectOf(context: Context, flat: Flat, { path }: Place): string {
  const { rules } = context;
  const placeOf = (at: string): Place => ({ path: at, within: undefined });
  return objectsOf(flat, {
    rules,
    path,
    inside: (value, at) => expressionOf(context, value, placeOf(at)),
    alternatives: (value, at) => flatten(context, value, { place: placeOf(at), refs: [] }),
    leave: (at) => leave(context, at),
  });
}

/**
 * A JSON schema, or "any JSON object", as a grammar (xgrammar's EBNF). What the grammar says is exact for types,
 * properties, `required`, `enum`, `const`, `items`, `anyOf`, `allOf` and local `$ref`; lengths, counts, bounds,
 * patterns and formats hold up to a budget (`budget.ts`). `oneOf` means `anyOf`. Not enforced, as no grammar can:
 * `not`, `if`, `uniqueItems`, `multipleOf`, `contains`, `dependentRequired` and what builds on them.
 *
 * Two choices where JSON Schema leaves freedom, both as llama.cpp's `json-schema-to-grammar.cpp` makes them: properties
 * come in the order of the schema, and an object that declares properties has no others unless `additionalProperties`
 * says so.
 */
import { literal } from "./char-set.ts";
import { constraintsOf, merge, type Flat } from "./merge.ts";
import { integerGrammar, numberGrammar, type Bound } from "./number-range.ts";
import { asSchema, countAt, failAt, listAt, mapAt, numberAt, resolvePointer, stringsAt, type Schema } from "./read.ts";
import { pay, repeat } from "./budget.ts";
import { add, choice, define, makeRules, reserve, textOf, use, type Rules } from "./rules.ts";
import { otherKeyGrammar, stringGrammar } from "./strings.ts";

const MAX_NODES = 20_000; // schemas visited, one reached by two ways counting twice
const MAX_OPTIONAL = 256; // properties of one object that may be left out; the cost of compiling grows as their square
const MAX_BRANCHES = 256; // of a union that has constraints beside it
const MAX_REFS_DEEP = 64; // references followed to merge one schema

export interface GrammarText {
  /** EBNF whose root rule is `root`. */
  readonly text: string;
  /** Whether a complete value cannot be continued: true for objects and arrays, false for a bare number. */
  readonly closes: boolean;
}

interface Context {
  readonly root: Schema;
  readonly rules: Rules;
  /** `$ref` → rule. */
  readonly refs: Map<string, string>;
  /** `$ref` → references that it leads to without passing into an object or array. */
  readonly direct: Map<string, Set<string>>;
  nodes: number;
}

/** Where we are: a JSON path, and the reference that we are directly in. */
interface Place {
  readonly path: string;
  readonly within: string | undefined;
}

/** Any JSON object. */
export function objectGrammar(): GrammarText {
  const rules = makeRules();
  return { text: textOf(rules, use(rules, "object")), closes: true };
}

/** Values that fit a schema. Throws `bad_request` naming the JSON path of what cannot be used. */
export function schemaGrammar(schema: Schema): GrammarText {
  const context: Context = { root: schema, rules: makeRules(), refs: new Map(), direct: new Map(), nodes: 0 };
  const place: Place = { path: "$", within: undefined };
  const root = rootOf(context, schema, place);
  const ends = new Set<string>();
  for (const ref of context.direct.keys()) checkEnds(context, ref, { trail: new Set(), ends });
  const closes = flatten(context, schema, { place, refs: [] }).every((flat) => {
    const types = typesOf(flat, place);
    return types?.every((type) => type === "object" || type === "array") === true;
  });
  return { text: textOf(context.rules, root), closes };
}

/** A reference that has constraints beside it is no rule of its own: one that leads back to itself never ends. */
function rootOf(context: Context, schema: Schema, place: Place): string {
  try {
    return expressionOf(context, schema, place);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return failAt(place.path, "nested too deeply, or a reference with constraints beside it leads back to itself");
  }
}

function expressionOf(context: Context, value: unknown, place: Place): string {
  if (++context.nodes > MAX_NODES) failAt(place.path, `the schema is too complex: more than ${MAX_NODES} parts`);
  const schema = asSchema(value, place.path);
  if (schema === true) return use(context.rules, "any");
  if (schema === false) return failAt(place.path, "no value fits a schema of false");
  const constraints = constraintsOf(schema);
  const combined = ["$ref", "allOf", "anyOf", "oneOf"].filter((key) => schema[key] !== undefined);
  if (combined.length === 0) return valueGrammar(context, constraints, place);
  if (combined.length === 1 && Object.keys(constraints).length === 0) {
    const key = combined[0]!;
    if (key === "$ref") return refRule(context, schema[key], place);
    const parts = partsOf(schema, key, place.path);
    if (key !== "allOf" || parts.length === 1) {
      return choice(
        parts.map((part, i) => expressionOf(context, part, { ...place, path: `${place.path}.${key}[${i}]` })),
      );
    }
  }
  const branches = flatten(context, schema, { place, refs: [] });
  if (branches.length === 0) failAt(place.path, "no value fits: its parts contradict each other or cannot be combined");
  return choice(branches.map((branch) => valueGrammar(context, branch, place)));
}

function partsOf(schema: Schema, key: string, path: string): readonly unknown[] {
  const parts = listAt(schema, key, path) ?? [];
  return parts.length > 0 ? parts : failAt(`${path}.${key}`, "expected at least one schema");
}

/** The rule of a reference, made at its first use. */
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

/** Throws where a reference leads back to itself without a value in between; `ends` collects those that do not. */
function checkEnds(context: Context, ref: string, seen: { trail: Set<string>; ends: Set<string> }): void {
  const { trail, ends } = seen;
  if (ends.has(ref)) return;
  if (trail.has(ref)) failAt("$", `'${ref}' refers to itself without end`);
  trail.add(ref);
  for (const next of context.direct.get(ref) ?? []) checkEnds(context, next, seen);
  trail.delete(ref);
  ends.add(ref);
}

/** A schema as alternatives without references and combinators. */
function flatten(context: Context, value: unknown, at: { place: Place; refs: readonly string[] }): Flat[] {
  if (++context.nodes > MAX_NODES) failAt(at.place.path, `the schema is too complex: more than ${MAX_NODES} parts`);
  const schema = asSchema(value, at.place.path);
  if (schema === true) return [{}];
  if (schema === false) return [];
  let out: Flat[] = [constraintsOf(schema)];
  const { path } = at.place;
  if (schema["$ref"] !== undefined) {
    const ref = String(schema["$ref"]);
    const target = resolvePointer(context.root, schema["$ref"], path);
    if (at.refs.includes(ref)) failAt(path, `'${ref}' refers to itself without end`);
    if (at.refs.length >= MAX_REFS_DEEP) failAt(path, `more than ${MAX_REFS_DEEP} references deep`);
    out = cross(out, flatten(context, target, { place: at.place, refs: [...at.refs, ref] }), path);
  }
  for (const part of schema["allOf"] === undefined ? [] : partsOf(schema, "allOf", path)) {
    out = cross(out, flatten(context, part, at), path);
  }
  for (const key of ["anyOf", "oneOf"]) {
    if (schema[key] === undefined) continue;
    out = cross(
      out,
      partsOf(schema, key, path).flatMap((part) => flatten(context, part, at)),
      path,
    );
  }
  return out;
}

function cross(left: readonly Flat[], right: readonly Flat[], path: string): Flat[] {
  if (left.length * right.length > MAX_BRANCHES) failAt(path, `its unions combine to more than ${MAX_BRANCHES} cases`);
  return left.flatMap((a) => right.map((b) => merge(a, b))).filter((flat) => flat !== undefined);
}

const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"] as const;
type Type = (typeof TYPES)[number];

const IMPLIED: readonly (readonly [Type, RegExp])[] = [
  ["object", /ropert|^required$/], // properties, additionalProperties, minProperties, propertyNames …
  ["array", /[iI]tems$/],
  ["string", /^(pattern|format|minLength|maxLength)$/],
  ["number", /imum$/],
];

/** Types of a flat schema, where it gives them or its keywords imply one; undefined: any. */
function typesOf(flat: Flat, place: Place): readonly Type[] | undefined {
  const given = flat["type"];
  const keys = Object.keys(flat);
  const implied = IMPLIED.find(([, pattern]) => keys.some((key) => pattern.test(key)))?.[0];
  const types = given === undefined ? (implied ? [implied] : undefined) : Array.isArray(given) ? given : [given];
  for (const type of types ?? []) {
    if (!TYPES.includes(type))
      failAt(`${place.path}.type`, `unknown type ${JSON.stringify(type)}; known: ${TYPES.join(", ")}`);
  }
  if (types?.length === 0) failAt(`${place.path}.type`, "expected at least one type");
  return types && flat["nullable"] === true && !types.includes("null") ? [...types, "null"] : types;
}

function valueGrammar(context: Context, flat: Flat, place: Place): string {
  const types = typesOf(flat, place);
  const values = listAt(flat, "enum", place.path);
  if (values) {
    const fitting = values.filter((value) => !types || types.some((type) => isOfType(value, type)));
    if (fitting.length === 0) failAt(`${place.path}.enum`, "no value is listed that has the type");
    return define(context.rules, fitting.map((value) => literal(JSON.stringify(value))).join(" | "));
  }
  if (!types) return use(context.rules, "any");
  return choice(types.map((type) => typeGrammar(context, flat, { type, place })));
}

function isOfType(value: unknown, type: Type): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return type === "integer" ? Number.isInteger(value) : typeof value === type;
}

function typeGrammar(context: Context, flat: Flat, { type, place }: { type: Type; place: Place }): string {
  switch (type) {
    case "null":
      return '"null"';
    case "boolean":
      return '("true" | "false")';
    case "integer":
    case "number":
      return numericGrammar(context.rules, flat, { type, path: place.path });
    case "string":
      return stringGrammar(context.rules, flat, { path: place.path, role: "value" });
    case "array":
      return arrayGrammar(context, flat, place);
    case "object":
      return objectOf(context, flat, place);
    default:
      return type satisfies never;
  }
}

function numericGrammar(
  rules: Rules,
  flat: Flat,
  { type, path }: { type: "integer" | "number"; path: string },
): string {
  const min = boundAt(flat, { closed: "minimum", open: "exclusiveMinimum", path, nearer: Math.max });
  const max = boundAt(flat, { closed: "maximum", open: "exclusiveMaximum", path, nearer: Math.min });
  if (!min && !max) return use(rules, type);
  const grammar = type === "integer" ? integerGrammar({ min, max }) : numberGrammar({ min, max });
  if (grammar === undefined) failAt(path, `no ${type} is between minimum and maximum`);
  return pay(rules.budget, "bounds") ? define(rules, grammar) : use(rules, type);
}

/** The nearer of two bounds; in draft 4 the open one is a flag of the closed one. */
function boundAt(
  flat: Flat,
  keys: { closed: string; open: string; path: string; nearer: (a: number, b: number) => number },
): Bound | undefined {
  const closed = numberAt(flat, keys.closed, keys.path);
  const flag = flat[keys.open];
  if (typeof flag === "boolean") return closed === undefined ? undefined : { value: closed, open: flag };
  const open = numberAt(flat, keys.open, keys.path);
  if (open === undefined) return closed === undefined ? undefined : { value: closed, open: false };
  return closed !== undefined && keys.nearer(closed, open) !== open
    ? { value: closed, open: false }
    : { value: open, open: true };
}

function arrayGrammar(context: Context, flat: Flat, { path }: Place): string {
  const { rules } = context;
  const legacy = Array.isArray(flat["items"]);
  const prefix = listAt(flat, legacy ? "items" : "prefixItems", path) ?? [];
  const given = flat[legacy ? "additionalItems" : "items"];
  const others = given ?? prefix.length === 0;
  const min = countAt(flat, "minItems", path) ?? 0;
  const max = countAt(flat, "maxItems", path) ?? Infinity;
  if (min > max) failAt(path, `minItems ${min} is more than maxItems ${max}`);
  if (others === false && min > prefix.length) failAt(path, `minItems ${min} is more than its ${prefix.length} items`);
  use(rules, "ws");
  const inside = (value: unknown, key: string): string =>
    define(rules, expressionOf(context, value, { path: `${path}.${key}`, within: undefined }));
  const fixed = prefix
    .slice(0, Number.isFinite(max) ? max : undefined)
    .map((each, i) => inside(each, `prefixItems[${i}]`));
  const room = others === false ? 0 : max - fixed.length;
  if (fixed.length === 0 && room <= 0) return '"[" ws "]"';
  const item = room > 0 ? inside(others, "items") : "";
  const lead = fixed.length > 0 ? fixed : [item];
  const copies = {
    min: Math.max(0, min - lead.length),
    max: Math.max(0, (others === false ? lead.length : max) - lead.length),
  };
  const more = item === "" ? '""' : repeat(rules.budget, `"," ws ${item}`, { ...copies, narrow: 1, wide: 0 });
  const list = `${lead.join(' "," ws ')} ${more} ws`;
  return define(rules, fixed.length === 0 && min === 0 ? `"[" ws (${list})? "]"` : `"[" ws ${list} "]"`);
}

function objectOf(context: Context, flat: Flat, { path }: Place): string {
  const { rules } = context;
  const declared = mapAt(flat, "properties", path);
  const required = new Set(stringsAt(flat, "required", path));
  const min = countAt(flat, "minProperties", path) ?? 0;
  const max = countAt(flat, "maxProperties", path) ?? Infinity;
  if (min > max) failAt(path, `minProperties ${min} is more than maxProperties ${max}`);
  use(rules, "ws");
  const names = [...new Set([...Object.keys(declared), ...required])];
  const valueOf = (name: string): unknown => (Object.hasOwn(declared, name) ? declared[name] : true);
  const wanted = names.filter((name) => valueOf(name) !== false || required.has(name));
  const optional = wanted.filter((name) => !required.has(name)).length;
  if (optional > MAX_OPTIONAL) failAt(path, `at most ${MAX_OPTIONAL} optional properties, got ${optional}`);
  const other = otherPairs(context, flat, { names, path });
  const copies = { min: Math.max(0, min - 1), max: max - 1, narrow: 1, wide: 0 };
  const counted = wanted.length === 0 ? copies : { ...copies, min: 0, max: Infinity };
  const next = other ? repeat(rules.budget, `"," ws ${other}`, counted) : "";
  // `rest`: what may follow a pair; `first`: what an object may begin with, undefined where it cannot be empty
  let rest = other && wanted.length > 0 ? `("," ws ${other})*` : "";
  let first = other && max > 0 ? (min > 0 ? `${other} ${next}` : `(${other} ${next})?`) : min > 0 ? undefined : '""';
  for (const name of wanted.toReversed()) {
    const value = expressionOf(context, valueOf(name), { path: `${path}.${name}`, within: undefined });
    const pair = define(rules, `${literal(JSON.stringify(name))} ":" ws ${value}`);
    if (required.has(name)) {
      first = `${pair} ${rest}`;
      rest = `"," ws ${pair} ${rest}`;
      continue;
    }
    const tail = rest === "" ? "" : define(rules, rest);
    first = first === undefined ? `${pair} ${tail}` : `(${pair} ${tail} | ${define(rules, first)})`;
    rest = `("," ws ${pair})? ${tail}`;
  }
  if (first === undefined) failAt(path, `minProperties ${min}, but no property is allowed`);
  return define(rules, `"{" ws ${first} ws "}"`);
}

/** An expression for a pair whose key is not declared; undefined where none is allowed. */
function otherPairs(
  context: Context,
  flat: Flat,
  options: { names: readonly string[]; path: string },
): string | undefined {
  const { names, path } = options;
  const { rules } = context;
  const pairOf = (key: string, value: unknown, at: string): string =>
    define(rules, `${key} ":" ws ${expressionOf(context, value, { path: at, within: undefined })}`);
  const patterns = Object.entries(mapAt(flat, "patternProperties", path)).filter(([, value]) => value !== false);
  if (patterns.length > 0) {
    const key = (pattern: string): string => stringGrammar(rules, { pattern }, { path, role: "key" });
    return choice(patterns.map(([pattern, value]) => pairOf(key(pattern), value, `${path}.patternProperties`)));
  }
  const value = flat["additionalProperties"] ?? flat["unevaluatedProperties"] ?? names.length === 0;
  if (value === false) return undefined;
  return pairOf(keyGrammar(context, flat, options), value, `${path}.additionalProperties`);
}

function keyGrammar(context: Context, flat: Flat, { names, path }: { names: readonly string[]; path: string }): string {
  const { rules } = context;
  if (flat["propertyNames"] === undefined) return otherKeyGrammar(rules, names);
  const at = `${path}.propertyNames`;
  const keys = flatten(context, flat["propertyNames"], { place: { path: at, within: undefined }, refs: [] }).map(
    (key) => {
      const listed = listAt(key, "enum", at)?.filter((name) => typeof name === "string");
      if (listed?.length) return define(rules, listed.map((name) => literal(JSON.stringify(name))).join(" | "));
      return stringGrammar(rules, key, { path: at, role: "key" });
    },
  );
  return keys.length > 0 ? choice(keys) : failAt(at, "no name fits");
}

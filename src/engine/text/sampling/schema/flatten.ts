/**
 * Flattens a schema to alternatives: resolves references, merges `allOf`, `anyOf`, `if` and related keywords. A value
 * fits the schema if it fits one alternative.
 */
import { CONDITIONS, conditionsOf, lackedBy, onlyOne, unlistedBy } from "./conditions.ts";
import { constraintsOf, EXCLUDED, LACKS, merge, type Flat } from "./merge.ts";
import { asSchema, failAt, listAt, mapAt, resolvePointer, stringsAt, type Schema } from "./read.ts";
import type { Rules } from "./rules.ts";

const MAX_NODES = 20_000; // visited schemas; a schema that is reached twice counts twice
const MAX_BRANCHES = 256; // branches of a union with constraints beside it
const MAX_REFS_DEEP = 64; // references followed to merge one schema
const MAX_TRIALS = 2; // nesting of properties that are checked to drop unsatisfiable alternatives
const SCALARS: readonly unknown[] = ["string", "number", "integer", "boolean", "null"];

export interface Context {
  readonly root: Schema;
  readonly rules: Rules;
  /** `$ref` → rule. */
  readonly refs: Map<string, string>;
  /** `$ref` → references reachable without passing into an object or array. */
  readonly direct: Map<string, Set<string>>;
  /** Places of unenforced keywords. */
  readonly left: Set<string>;
  /** Text of a schema with merged parts → rule. */
  readonly merged: Map<string, string>;
  readonly holdsConditions: boolean;
  /** Alternatives derive from `if`, `not` or related keywords. */
  isConditional: boolean;
  nodes: number;
  /** Nesting of properties at which alternatives are being checked. */
  trials: number;
}

/** Leaves a keyword to the client's validator. */
export const leave = (context: Context, place: string): void => void context.left.add(place);

/** Counts a schema. Throws `bad_request` if there are too many. */
export function countSchema(context: Context, path: string): void {
  if (++context.nodes > MAX_NODES) failAt(path, `the schema is too complex: more than ${MAX_NODES} parts`);
}

/** The current place: a JSON path, and the reference directly around it. */
export interface Place {
  readonly path: string;
  readonly within: string | undefined;
}

export function partsOf(schema: Schema, key: string, path: string): readonly unknown[] {
  const parts = listAt(schema, key, path) ?? [];
  if (parts.length === 0) failAt(`${path}.${key}`, "expected at least one schema");
  return key === "oneOf" ? (onlyOne(parts) ?? parts) : parts;
}

/** A schema as alternatives without references and combinators. */
export function flatten(context: Context, value: unknown, at: { place: Place; refs: readonly string[] }): Flat[] {
  countSchema(context, at.place.path);
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
    out = pruned(context, cross(out, flatten(context, part, at), path), at.place);
  }
  for (const key of ["anyOf", "oneOf"]) {
    if (schema[key] === undefined) continue;
    out = cross(
      out,
      partsOf(schema, key, path).flatMap((part) => flatten(context, part, at)),
      path,
    );
  }
  return pruned(context, withConditions(context, schema, { out, at }), at.place);
}

/** Drops unsatisfiable alternatives of conditions. */
function pruned(context: Context, flats: Flat[], place: Place): Flat[] {
  if (!context.isConditional) return flats;
  return flats.map((flat) => possible(context, flat, place)).filter((flat) => flat !== undefined);
}

/** The remaining alternatives under `if`, `not` and related keywords. */
function withConditions(
  context: Context,
  schema: Schema,
  { out: before, at }: { out: Flat[]; at: { place: Place; refs: readonly string[] } },
): Flat[] {
  const { path } = at.place;
  if (!context.holdsConditions) {
    for (const key of CONDITIONS) if (schema[key] !== undefined) leave(context, `${path}.${key}`);
    return before;
  }
  const excluded = schema["not"] === undefined ? undefined : unlistedBy(schema, path);
  let out = before;
  if (excluded) out = out.map((flat) => merge(flat, { [EXCLUDED]: excluded })).filter((flat) => flat !== undefined);
  const lacked = lackedBy(schema);
  if (lacked !== undefined) {
    context.isConditional = true;
    out = out.map((flat) => merge(flat, { type: "object", [LACKS]: [lacked] })).filter((flat) => flat !== undefined);
  }
  for (const { key, anyOf } of conditionsOf(schema, path)) {
    if (key === "not" && (excluded || lacked !== undefined)) continue;
    const ways = anyOf?.flatMap((part) => flatten(context, part, at));
    if (!ways || ways.length * out.length > MAX_BRANCHES) leave(context, `${path}.${key}`);
    else {
      context.isConditional = true;
      out = out.flatMap((a) => ways.map((b) => merge(a, b))).filter((flat) => flat !== undefined);
    }
  }
  return out;
}

/** A flat schema of a scalar, as a schema; undefined for others. */
function scalarOf(flat: Flat): Schema | undefined {
  const types = [flat["type"]].flat();
  const isScalar = types.every((type) => SCALARS.includes(type));
  if (!isScalar && flat["enum"] === undefined) return undefined;
  const { [EXCLUDED]: excluded, ...rest } = flat;
  return excluded === undefined ? rest : { ...rest, not: { enum: excluded } };
}

/** Drops unsatisfiable optional properties; undefined if a required one is unsatisfiable. */
function possible(context: Context, flat: Flat, place: Place): Flat | undefined {
  if (context.trials >= MAX_TRIALS) return flat;
  const required = stringsAt(flat, "required", place.path);
  const properties = { ...mapAt(flat, "properties", place.path) };
  const lacks = stringsAt(flat, LACKS, place.path);
  if (required.some((name) => lacks.includes(name))) return undefined;
  context.trials++;
  try {
    for (const [name, value] of Object.entries(properties)) {
      const isMerged = typeof value === "object" && value !== null && Object.hasOwn(value, "allOf");
      const ways = isMerged ? flatten(context, value, { place, refs: [] }) : [];
      const fits = isMerged ? ways.length > 0 : value !== false && !lacks.includes(name);
      if (!fits && required.includes(name)) return undefined;
      if (!fits) properties[name] = false;
      else if (ways.length === 1) properties[name] = scalarOf(ways[0]!) ?? value;
    }
  } finally {
    context.trials--;
  }
  return { ...flat, ...(flat["properties"] === undefined ? {} : { properties }) };
}

function cross(left: readonly Flat[], right: readonly Flat[], path: string): Flat[] {
  if (left.length * right.length > MAX_BRANCHES) failAt(path, `its unions combine to more than ${MAX_BRANCHES} cases`);
  return left.flatMap((a) => right.map((b) => merge(a, b))).filter((flat) => flat !== undefined);
}

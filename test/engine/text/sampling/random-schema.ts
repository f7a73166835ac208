/**
 * Random JSON schemas of objects: types, enums, constants, bounds, lengths, patterns, formats, nesting, unions and
 * references. Texts, lists and depth are bounded, so that every value is finite.
 */
import { makeRng, type Rng } from "../../../../src/engine/text/rng.ts";

type Schema = Record<string, unknown>;

const WORDS = ["city", "name", "count", "unit", "tags", "from", "to", "size", "color", "note", "a b", "größe", "x-1"];
const PATTERNS = ["^[A-Z]{2,4}$", "^\\d{3}-\\d{2}$", "^(red|green|blue)$", "^#[0-9a-f]{6}$"];
const DEPTH_MAX = 3;

/** The schema of an object; the same seed gives the same. */
export function randomSchema(seed: number): Schema {
  const rng = makeRng(seed);
  const names = ["Point", "Item"].filter(() => rng.float() < 0.3);
  const $defs = Object.fromEntries(names.map((name) => [name, objectSchema(rng, { depth: DEPTH_MAX - 1, refs: [] })]));
  const refs = names.map((name) => `#/$defs/${name}`);
  return { ...objectSchema(rng, { depth: 0, refs }), ...(names.length > 0 ? { $defs } : {}) };
}

interface Place {
  readonly depth: number;
  readonly refs: readonly string[];
}

const pick = <T>(rng: Rng, items: readonly T[]): T => items[Math.floor(rng.float() * items.length)]!;
const whole = (rng: Rng, from: number, to: number): number => from + Math.floor(rng.float() * (to - from + 1));

function objectSchema(rng: Rng, place: Place): Schema {
  const names = new Set(Array.from({ length: whole(rng, 1, 4) }, () => pick(rng, WORDS)));
  const properties = Object.fromEntries(Array.from(names, (name) => [name, valueSchema(rng, inside(place))]));
  const required = [...names].filter(() => rng.float() < 0.7);
  return {
    type: "object",
    properties,
    ...(required.length > 0 ? { required } : {}),
    ...(rng.float() < 0.3 ? { additionalProperties: false } : {}),
  };
}

const inside = ({ depth, refs }: Place): Place => ({ depth: depth + 1, refs });

function valueSchema(rng: Rng, place: Place): Schema {
  const flat = [textSchema, textSchema, numberSchema, wholeSchema, enumSchema, constSchema, booleanSchema];
  const deep = place.depth < DEPTH_MAX ? [objectSchema, listSchema, unionSchema, tupleSchema] : [];
  if (place.refs.length > 0 && rng.float() < 0.2) return { $ref: pick(rng, place.refs) };
  return pick(rng, [...flat, ...deep])(rng, place);
}

function textSchema(rng: Rng): Schema {
  const described = { type: "string", description: "a text" };
  switch (whole(rng, 0, 4)) {
    case 0:
      return { type: "string", pattern: pick(rng, PATTERNS) };
    case 1:
      return { type: "string", format: pick(rng, ["date", "time", "uuid"]) };
    case 2:
      return { ...described, minLength: whole(rng, 1, 3), maxLength: whole(rng, 3, 12) };
    default:
      return { ...described, maxLength: whole(rng, 1, 16) };
  }
}

function numberSchema(rng: Rng): Schema {
  const minimum = whole(rng, -20, 20);
  return { type: "number", minimum, maximum: minimum + whole(rng, 1, 100) };
}

function wholeSchema(rng: Rng): Schema {
  const minimum = whole(rng, -1000, 1000);
  return rng.float() < 0.5
    ? { type: "integer", minimum, maximum: minimum + whole(rng, 0, 2000) }
    : { type: "integer", exclusiveMinimum: minimum, maximum: minimum + 50 };
}

const enumSchema = (rng: Rng): Schema => ({
  enum: [pick(rng, WORDS), 'é "q"', whole(rng, 0, 9), null, true].slice(0, whole(rng, 1, 5)),
});
const constSchema = (rng: Rng): Schema => ({ const: pick<unknown>(rng, ["fixed", 7, false, null, { k: [1, "v"] }]) });
const booleanSchema = (rng: Rng): Schema => ({ type: rng.float() < 0.3 ? ["boolean", "null"] : "boolean" });

function listSchema(rng: Rng, place: Place): Schema {
  const minItems = whole(rng, 0, 1);
  return { type: "array", items: valueSchema(rng, inside(place)), minItems, maxItems: minItems + whole(rng, 1, 2) };
}

function tupleSchema(rng: Rng, place: Place): Schema {
  const prefixItems = Array.from({ length: whole(rng, 1, 2) }, () => valueSchema(rng, inside(place)));
  return { type: "array", prefixItems, items: false, minItems: prefixItems.length };
}

function unionSchema(rng: Rng, place: Place): Schema {
  const branches = Array.from({ length: whole(rng, 2, 3) }, () => valueSchema(rng, inside(place)));
  return { [pick(rng, ["anyOf", "oneOf"])]: branches };
}

/** The types that a value of a flat schema may have. */
import { TYPES, type Flat, type Type } from "./merge.ts";
import { failAt } from "./read.ts";

/** Keywords that imply their type if no `type` is given, as in llama.cpp's `json-schema.cpp`. */
const IMPLIED: readonly (readonly [Type, (flat: Flat) => boolean])[] = [
  ["object", (flat) => flat["properties"] !== undefined || (flat["additionalProperties"] ?? true) !== true],
  ["array", (flat) => flat["items"] !== undefined || flat["prefixItems"] !== undefined],
  ["string", (flat) => ["pattern", "minLength", "maxLength"].some((key) => flat[key] !== undefined)],
  ["string", (flat) => /^(date|time|date-time|uuid[1-5]?)$/.test(String(flat["format"]))],
];

/** Any value; an integer is a number. */
const ANY = TYPES.filter((type) => type !== "integer");

const KEYWORDS: Readonly<Partial<Record<Type, RegExp>>> = {
  object: /ropert|^required$|^lacks$/, // properties, additionalProperties, minProperties, propertyNames …
  array: /[iI]tems$|ontains$/,
  string: /^(pattern|format|minLength|maxLength)$/,
  number: /imum$|^multipleOf$/,
};

/** Returns whether a schema constrains values of this type beyond their type. */
export const constrains = (flat: Flat, type: Type): boolean =>
  Object.keys(flat).some((key) => KEYWORDS[type]?.test(key) === true);

/** From `type`, or implied by other keywords; undefined: any value. */
export function typesOf(flat: Flat, path: string): readonly Type[] | undefined {
  const given = flat["type"];
  if (given === undefined) {
    const implied = IMPLIED.find(([, implies]) => implies(flat))?.[0];
    const types = implied ? [implied] : TYPES.some((type) => constrains(flat, type)) ? ANY : undefined;
    return implied && flat["nullable"] === true ? [implied, "null"] : types;
  }
  const types: readonly unknown[] = Array.isArray(given) ? given : [given];
  for (const type of types) {
    if (!isType(type)) failAt(`${path}.type`, `unknown type ${JSON.stringify(type)}; known: ${TYPES.join(", ")}`);
  }
  const known = types.filter(isType);
  if (known.length === 0) failAt(`${path}.type`, "expected at least one type");
  return flat["nullable"] === true && !known.includes("null") ? [...known, "null"] : known;
}

const isType = (value: unknown): value is Type => TYPES.some((type) => type === value);

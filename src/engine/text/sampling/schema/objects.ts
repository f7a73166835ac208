/**
 * Objects of a schema: declared properties in their order, then others. An object that declares none has its required
 * properties first, in any order if they are few.
 */
import { repeat } from "./budget.ts";
import { literal } from "./char-set.ts";
import { LACKS, type Flat } from "./merge.ts";
import { countAt, failAt, listAt, mapAt, stringsAt } from "./read.ts";
import { choice, define, use, type Rules } from "./rules.ts";
import { otherKeyGrammar, stringGrammar } from "./strings.ts";

const MAX_OPTIONAL = 256; // optional properties of one object; the cost of compiling grows with their square
/** Maximum number of required properties in any order; each set of written properties is a state. */
const MAX_UNORDERED = 6;

interface ObjectParts {
  readonly rules: Rules;
  readonly path: string;
  /** An expression for the values of a schema at a place. */
  readonly inside: (schema: unknown, at: string) => string;
  /** The alternatives of a schema at a place. */
  readonly alternatives: (schema: unknown, at: string) => readonly Flat[];
  /** Records an unenforced keyword at a place. */
  readonly leave: (at: string) => void;
}

export function objectGrammar(flat: Flat, parts: ObjectParts): string {
  const { rules, path } = parts;
  const declared = Object.keys(mapAt(flat, "properties", path));
  const required = new Set(stringsAt(flat, "required", path));
  const min = countAt(flat, "minProperties", path) ?? 0;
  const max = countAt(flat, "maxProperties", path) ?? Infinity;
  if (min > max) failAt(path, `minProperties ${min} is more than maxProperties ${max}`);
  use(rules, "ws");
  const valueOf = valuesByName(flat, path);
  const lacks = stringsAt(flat, LACKS, path);
  const names = [...new Set([...declared, ...required])];
  const wanted = names.filter((name) => required.has(name) || (valueOf(name) !== false && !lacks.includes(name)));
  const optional = wanted.filter((name) => !required.has(name)).length;
  if (optional > MAX_OPTIONAL) failAt(path, `at most ${MAX_OPTIONAL} optional properties, got ${optional}`);
  const isOpen = declared.length === 0; // a required name then has the value of any undeclared property
  const other = otherPairs(flat, { declared, excluded: isOpen ? lacks : [...names, ...lacks] }, parts);
  const pairOf = (name: string): string => {
    const value = lacks.includes(name) ? false : valueOf(name);
    return define(rules, `${literal(JSON.stringify(name))} ":" ws ${parts.inside(value, `${path}.${name}`)}`);
  };
  if (isOpen && required.size > 0) {
    const pairs = [...required].map(pairOf);
    const room = { min: Math.max(0, min - pairs.length), max: max - pairs.length };
    if (room.max < 0) failAt(path, `maxProperties ${max}, but ${pairs.length} are required`);
    const rest = other ? repeat(rules.budget, `"," ws ${other}`, { ...room, narrow: 1, wide: 0 }) : "";
    return define(rules, `"{" ws ${inAnyOrder(rules, pairs, rest)} ws "}"`);
  }
  const copies = { min: Math.max(0, min - 1), max: max - 1, narrow: 1, wide: 0 };
  const counted = wanted.length === 0 ? copies : { ...copies, min: 0, max: Infinity };
  const next = other ? repeat(rules.budget, `"," ws ${other}`, counted) : "";
  const others = other && max > 0 ? (min > 0 ? `${other} ${next}` : `(${other} ${next})?`) : min > 0 ? undefined : '""';
  const rest = other && wanted.length > 0 ? `("," ws ${other})*` : "";
  // the last pairs first, because they are paid from the budget in this order
  const pairs = wanted.toReversed().map((name) => ({ pair: pairOf(name), isRequired: required.has(name) }));
  const all = inOrder(rules, pairs, { first: others, rest });
  return all === undefined
    ? failAt(path, `minProperties ${min}, but no property is allowed`)
    : define(rules, `"{" ws ${all} ws "}"`);
}

/** The schema of a property by its name; false: the property is forbidden. */
function valuesByName(flat: Flat, path: string): (name: string) => unknown {
  const declared = mapAt(flat, "properties", path);
  const patterns = Object.entries(mapAt(flat, "patternProperties", path));
  const others = flat["additionalProperties"] ?? flat["unevaluatedProperties"] ?? true;
  const undeclared = others === false ? true : others; // a required property is not forbidden
  return (name) => {
    const fitting = patterns.filter(([pattern]) => fits(pattern, name)).map(([, value]) => value);
    const own = Object.hasOwn(declared, name) ? declared[name] : fitting.length > 0 || undeclared;
    return fitting.length > 0 && own !== false ? { allOf: [own, ...fitting] } : own;
  };
}

/** Each pair once, in any order, then `rest`. */
function inAnyOrder(rules: Rules, pairs: readonly string[], rest: string): string {
  const states = 2 ** pairs.length;
  if (pairs.length > MAX_UNORDERED || rules.budget.units < states) return `${pairs.join(' "," ws ')} ${rest}`;
  rules.budget.units -= states;
  const made = new Map<number, string>();
  const after = (used: number): string => {
    const known = made.get(used);
    if (known !== undefined) return known;
    const lead = used === 0 ? "" : '"," ws ';
    const ways = pairs.flatMap((pair, i) => ((used >> i) & 1 ? [] : [`${lead}${pair} ${after(used | (1 << i))}`]));
    const rule = ways.length === 0 ? rest : define(rules, choice(ways));
    made.set(used, rule);
    return rule;
  };
  return after(0);
}

/**
 * Pairs, given from last to first; undefined if no object fits.
 * @param tails `first`: an object without any of the pairs, undefined if it cannot exist; `rest`: the text after a pair
 */
function inOrder(
  rules: Rules,
  pairs: readonly { readonly pair: string; readonly isRequired: boolean }[],
  tails: { readonly first: string | undefined; readonly rest: string },
): string | undefined {
  let { first, rest } = tails;
  for (const { pair, isRequired } of pairs) {
    if (isRequired) {
      first = `${pair} ${rest}`;
      rest = `"," ws ${pair} ${rest}`;
      continue;
    }
    const tail = rest === "" ? "" : define(rules, rest);
    first = first === undefined ? `${pair} ${tail}` : `(${pair} ${tail} | ${define(rules, first)})`;
    rest = `("," ws ${pair})? ${tail}`;
  }
  return first;
}

function fits(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    return false; // `patternGrammar` reports the error if other keys need the pattern
  }
}

/**
 * Returns whether patterns cannot overlap: no required name fits one, and they begin with different texts, none of
 * which begins another.
 */
function areApart(patterns: readonly string[], names: readonly string[]): boolean {
  if (names.some((name) => patterns.some((pattern) => fits(pattern, name)))) return false;
  const starts = patterns.map((pattern) => /^\^([\w-]+)(?![?*{|\w-])/.exec(pattern)?.[1] ?? "");
  const isAnyOf = patterns.some((pattern) => pattern.includes("|"));
  return starts.every((a, i) => starts.slice(i + 1).every((b) => !isAnyOf && !a.startsWith(b) && !b.startsWith(a)));
}

/** An expression for a pair with an undeclared key; undefined if none is allowed. */
function otherPairs(
  flat: Flat,
  names: { readonly declared: readonly string[]; readonly excluded: readonly string[] },
  parts: ObjectParts,
): string | undefined {
  const { rules, path, inside, leave } = parts;
  const pairOf = (key: string, value: unknown, at: string): string =>
    define(rules, `${key} ":" ws ${inside(value, at)}`);
  const all = mapAt(flat, "patternProperties", path);
  const declared = Object.entries(mapAt(flat, "properties", path)).flatMap(([name, own]) => (own === true ? [] : name));
  if (!areApart(Object.keys(all), declared)) leave(`${path}.patternProperties`);
  const patterns = Object.entries(all).filter(([, value]) => value !== false);
  if (patterns.length > 0) {
    const key = (pattern: string): string => stringGrammar(rules, { pattern }, { path, role: "key" });
    return choice(patterns.map(([pattern, value]) => pairOf(key(pattern), value, `${path}.patternProperties`)));
  }
  const value = flat["additionalProperties"] ?? flat["unevaluatedProperties"] ?? names.declared.length === 0;
  if (value === false) return undefined;
  return pairOf(keyGrammar(flat, names.excluded, parts), value, `${path}.additionalProperties`);
}

function keyGrammar(flat: Flat, excluded: readonly string[], { rules, path, alternatives }: ObjectParts): string {
  if (flat["propertyNames"] === undefined) return otherKeyGrammar(rules, excluded);
  const at = `${path}.propertyNames`;
  const keys = alternatives(flat["propertyNames"], at).map((key) => {
    const listed = listAt(key, "enum", at)?.filter((name) => typeof name === "string");
    if (listed?.length) return define(rules, listed.map((name) => literal(JSON.stringify(name))).join(" | "));
    return stringGrammar(rules, key, { path: at, role: "key" });
  });
  return keys.length > 0 ? choice(keys) : failAt(at, "no name fits");
}

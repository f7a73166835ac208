/** Arrays of a schema: items, tuples, counts, `uniqueItems` of listed values, and `contains`. */
import { repeat } from "./budget.ts";
import { literal } from "./char-set.ts";
import { negate } from "./conditions.ts";
import type { Flat } from "./merge.ts";
import { asSchema, countAt, failAt, listAt } from "./read.ts";
import { choice, define, use, type Rules } from "./rules.ts";

/** Sets of values that may have been used; each is a state of the grammar. */
const UNIQUE_STATES_MAX = 128;
const PLACES_MAX = 16; // positions of the item that an array must contain

interface ArrayParts {
  readonly rules: Rules;
  readonly path: string;
  /** A rule for the values of a schema at `key`. */
  readonly inside: (schema: unknown, key: string) => string;
  /** The values of a schema that lists them. */
  readonly valuesOf: (schema: unknown) => readonly unknown[] | undefined;
  /** Records an unenforced keyword. */
  readonly leave: (key: string) => void;
}

interface Counts {
  readonly min: number;
  readonly max: number;
}

export function arrayGrammar(flat: Flat, parts: ArrayParts): string {
  const { rules, path, inside } = parts;
  const legacy = Array.isArray(flat["items"]);
  const listed = listAt(flat, legacy ? "items" : "prefixItems", path) ?? [];
  const end = listed.indexOf(false); // no array has this many items
  const prefix = end < 0 ? listed : listed.slice(0, end);
  const given = flat[legacy ? "additionalItems" : "items"] ?? unevaluated(flat);
  const others = end < 0 ? (given ?? prefix.length === 0) : false;
  const counts = countsOf(flat, path);
  const { min, max } = counts;
  if (others === false && min > prefix.length) failAt(path, `minItems ${min} is more than its ${prefix.length} items`);
  use(rules, "ws");
  const special = prefix.length === 0 && others !== false ? specialGrammar(flat, { others, counts }, parts) : undefined;
  if (special !== undefined) return special;
  if (flat["uniqueItems"] === true && !(max <= 1 || (others === false && prefix.length <= 1))) {
    parts.leave("uniqueItems");
  }
  if (flat["contains"] !== undefined) parts.leave("contains");
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

/** The schema of items that no keyword evaluates. Items that fit `contains` count as evaluated. */
function unevaluated({ unevaluatedItems, contains }: Flat): unknown {
  if (unevaluatedItems === undefined || contains === undefined) return unevaluatedItems;
  return { anyOf: [contains, unevaluatedItems] };
}

function countsOf(flat: Flat, path: string): Counts {
  const min = countAt(flat, "minItems", path) ?? 0;
  const max = countAt(flat, "maxItems", path) ?? Infinity;
  if (min > max) failAt(path, `minItems ${min} is more than maxItems ${max}`);
  return { min, max };
}

/** For `uniqueItems` or `contains`, if enforceable. */
function specialGrammar(
  flat: Flat,
  { others, counts }: { others: unknown; counts: Counts },
  parts: ArrayParts,
): string | undefined {
  const values = flat["uniqueItems"] === true && counts.max > 1 ? parts.valuesOf(others) : undefined;
  const unique = values && uniqueGrammar(values, counts, parts);
  if (unique !== undefined && flat["contains"] !== undefined) parts.leave("contains");
  return unique ?? containsGrammar(flat, { others, counts }, parts);
}

/** Each listed value at most once, in any order. */
function uniqueGrammar(
  values: readonly unknown[],
  { min, max }: Counts,
  { rules, path }: ArrayParts,
): string | undefined {
  const texts = [...new Set(values.map((value) => JSON.stringify(value)))];
  if (min > texts.length) failAt(path, `minItems ${min} is more than the ${texts.length} values that its items have`);
  if (texts.length > 30 || states(texts.length, max) > UNIQUE_STATES_MAX) return undefined;
  const made = new Map<number, string>();
  /** The rest of the array after a set of values was used. */
  const after = (used: number, count: number): string => {
    const known = made.get(used);
    if (known !== undefined) return known;
    const lead = count === 0 ? "" : '"," ws ';
    const next = count >= max ? [] : texts.flatMap((text, i) => ((used >> i) & 1 ? [] : [{ text, i }]));
    const ways = next.map(({ text, i }) => `${lead}${literal(text)} ${after(used | (1 << i), count + 1)}`);
    const rule = define(rules, [...ways, ...(count >= min ? [count === 0 ? '""' : "ws"] : [])].join(" | "));
    made.set(used, rule);
    return rule;
  };
  return define(rules, `"[" ws ${after(0, 0)} "]"`);
}

/** Subsets of at most `max` of this many values. */
function states(values: number, max: number): number {
  let [sum, ways] = [0, 1];
  for (let size = 0; size <= Math.min(values, max); size++) {
    sum += ways;
    ways = (ways * (values - size)) / (size + 1);
  }
  return sum;
}

/** An item that fits `contains`, with others before and after it. */
function containsGrammar(
  flat: Flat,
  { others, counts: { min, max } }: { others: unknown; counts: Counts },
  { rules, path, inside, leave }: ArrayParts,
): string | undefined {
  const { contains } = flat;
  const least = countAt(flat, "minContains", path) ?? 1;
  const most = countAt(flat, "maxContains", path) ?? Infinity;
  if (contains === undefined || (least === 0 && most === Infinity)) return undefined;
  if (least > most) failAt(path, `minContains ${least} is more than maxContains ${most}`);
  const unfit = most === Infinity ? [true] : negate(asSchema(contains, `${path}.contains`));
  const isPlain = min <= least && max === Infinity;
  const isOne = least === 1 && most === Infinity && (Number.isFinite(max) ? max : min) <= PLACES_MAX;
  if (!unfit || unfit.length === 0 || least > PLACES_MAX || least === 0 || !(isPlain || isOne)) return undefined;
  if (flat["uniqueItems"] === true) leave("uniqueItems");
  const wanted = inside({ allOf: [others, contains] }, "contains");
  const other = inside(most === Infinity ? others : { allOf: [others, { anyOf: unfit }] }, "items");
  const before = `(${other} "," ws)`;
  const after = `("," ws ${other})`;
  if (isPlain) {
    const again = `(${after}* "," ws ${wanted}){${least - 1},${Number.isFinite(most) ? most - 1 : ""}}`;
    const list = `${before}* ${wanted} ${least === 1 && most === 1 ? "" : again} ${after}*`;
    return define(rules, `"[" ws ${list} ws "]"`);
  }
  const alternatives = Array.from({ length: Number.isFinite(max) ? max : min }, (_, i) => {
    const left = Math.max(0, min - 1 - i);
    return `${before}{${i},${i}} ${wanted} ${after}{${left},${Number.isFinite(max) ? max - 1 - i : ""}}`;
  });
  if (max === Infinity) alternatives.push(`${before}{${min},} ${wanted} ${after}*`);
  return define(rules, `"[" ws ${choice(alternatives)} ws "]"`);
}

/** Strings of a schema: `pattern`, `format`, `minLength`, `maxLength`, and undeclared keys. */
import { ASCII, classOf, ESCAPED, grammarChar, literal, negatedClass, subtract, union } from "./char-set.ts";
import { FORMATS } from "./formats.ts";
import { markRule, type LengthLimits } from "./length-marks.ts";
import { EXCLUDED } from "./merge.ts";
import { countAt, failAt, listAt, stringAt, type Schema } from "./read.ts";
import { looksAround, patternGrammar } from "./regex.ts";
import { affordable, affords, pay } from "./budget.ts";
import { add, AFTER_KEY, AFTER_VALUE, define, RAW_CHAR, reserve, use, type Rules } from "./rules.ts";

type Role = "key" | "value";

/** Strings up to this length are counted by the grammar; the sampler counts longer ones, which compile much faster. */
const COUNTED_MAX = 8;

/**
 * An expression for a string that fits the constraints. A pattern or a format overrides lengths, unless the pattern
 * repeats one class.
 */
export function stringGrammar(rules: Rules, schema: Schema, options: { path: string; role: Role }): string {
  const { path, role } = options;
  const plain = use(rules, role === "key" ? "key" : "string");
  const min = countAt(schema, "minLength", path) ?? 0;
  const max = countAt(schema, "maxLength", path) ?? Infinity;
  if (min > max) failAt(path, `minLength ${min} is more than maxLength ${max}`);
  const pattern = withLengths(patternOf(schema, path), { min, max });
  if (pattern !== undefined) {
    const paid = pay(rules.budget, "pattern");
    const body = patternGrammar(pattern, { where: path, budget: rules.budget });
    if (!paid) return plain;
    use(rules, "ws");
    return define(rules, `"\\u0022" ${body} "\\u0022"${role === "key" ? AFTER_KEY : AFTER_VALUE}`);
  }
  if (max === 0) return literal('""');
  if (min === 0 && max === Infinity) {
    const excluded = (listAt(schema, EXCLUDED, path) ?? []).filter((value) => typeof value === "string");
    return excluded.length > 0 ? otherGrammar(rules, excluded, role) : plain;
  }
  const after = role === "key" ? AFTER_KEY : AFTER_VALUE;
  const held =
    max <= COUNTED_MAX
      ? countedGrammar(rules, { min, max, char: RAW_CHAR, end: `"\\u0022"`, after })
      : max < Infinity || min > COUNTED_MAX
        ? limitedGrammar(rules, { min, max }, after)
        : undefined;
  if (held !== undefined) return define(rules, `"\\u0022" ${held}`);
  const counts = affordable(rules.budget, { min, max: Infinity, narrow: 0, wide: 1 });
  if (counts.min === 0) return plain;
  const rest = role === "key" ? "key_rest" : "string_rest";
  return define(rules, `"\\u0022" ${`${RAW_CHAR} `.repeat(counts.min)}${rest}`);
}

/** The rest of a string whose length the sampler limits; undefined if the budget does not allow its state. */
function limitedGrammar(rules: Rules, limits: LengthLimits, after: string): string | undefined {
  const mark = markRule(limits);
  const known = `string ${mark}${after}`;
  const made = rules.names.get(known);
  if (made !== undefined || !pay(rules.budget, "state")) return made;
  use(rules, "ws");
  use(rules, "escape");
  const rest = reserve(rules);
  add(rules, rest, `("\\u0022" | ${RAW_CHAR} ${rest} | "\\u005c" escape ${rest} | ${mark})${after}`);
  rules.names.set(known, rest);
  return rest;
}

interface Counted {
  readonly min: number;
  readonly max: number;
  /** Expressions for one character, for the text's end, and for the text allowed after it. */
  readonly char: string;
  readonly end: string;
  readonly after?: string;
}

/**
 * A text of `min` to `max` characters and its end; undefined if the budget does not allow it. Each rule stands for a
 * number of remaining characters, so all such texts of a grammar share the rules of the longest.
 */
export function countedGrammar(rules: Rules, { min, max, char, end, after = "" }: Counted): string | undefined {
  let rest = define(rules, `${end}${after}`);
  for (let left = 1; left <= max; left++) {
    const more = `${char} ${rest}`;
    const body = left <= max - min ? `(${end} | ${more})${after}` : `${more}${after}`;
    if (!rules.names.has(body)) {
      // The rest of the chain would be missing, too
      if (!affords(rules.budget, "state", max - left + 1)) return undefined;
      pay(rules.budget, "state");
    }
    rest = define(rules, body);
  }
  return rest;
}

/** A single repeated class. */
const REPEATED = /^\^(\[(?:\\.|[^\]\\])+\]|\\[dws])([+*])\$$/;

/** A pattern, with `minLength` and `maxLength` as its repetition if it repeats one class. */
function withLengths(pattern: string | undefined, { min, max }: { min: number; max: number }): string | undefined {
  const [, unit, times] = (pattern && REPEATED.exec(pattern)) || [];
  if (unit === undefined || (min === 0 && max === Infinity)) return pattern;
  const least = Math.max(min, times === "+" ? 1 : 0);
  return least > max ? pattern : `^${unit}{${least},${Number.isFinite(max) ? max : ""}}$`;
}

/** The pattern to enforce: the given one, unless it has look-around and a known format is equivalent. */
function patternOf(schema: Schema, path: string): string | undefined {
  const pattern = stringAt(schema, "pattern", path);
  const name = stringAt(schema, "format", path) ?? "";
  const format = Object.hasOwn(FORMATS, name) ? FORMATS[name] : undefined;
  return pattern === undefined || (looksAround(pattern) && format !== undefined) ? format : pattern;
}

/** A key of an open object: any except the declared names, in any spelling. */
export const otherKeyGrammar = (rules: Rules, names: readonly string[]): string => otherGrammar(rules, names, "key");

function otherGrammar(rules: Rules, names: readonly string[], role: Role): string {
  if (names.length === 0) return use(rules, role === "key" ? "key" : "string");
  const known = `${role} except ${JSON.stringify(names.toSorted())}`;
  const made = rules.names.get(known) ?? exceptGrammar(rules, names, role);
  rules.names.set(known, made);
  return made;
}

function exceptGrammar(rules: Rules, names: readonly string[], role: Role): string {
  const after = role === "key" ? AFTER_KEY : AFTER_VALUE;
  use(rules, "ws");
  const rest = reserve(rules);
  add(rules, rest, `("\\u0022" | ${RAW_CHAR} ${rest} | "\\u005c" ["\\\\bfnrt] ${rest})${after}`);
  const units = names.map(spelt).filter((name) => !name.includes("\\u"));
  return define(rules, `"\\u0022" ${otherThan(rules, { names: units, rest, after })}`);
}

/**
 * Divides a name into units of JSON text: a character, or a two-character escape. Spellings are unique, because `\u`
 * and `\/` are not allowed.
 */
const spelt = (name: string): string[] =>
  JSON.stringify(name)
    .slice(1, -1)
    .match(/\\.|[^\\]/gsu) ?? [];

const rangeOf = (char: string): readonly [number, number] => [char.codePointAt(0)!, char.codePointAt(0)!];

/**
 * A rule for the text after a common prefix of all names that leads to none of them. Each is a state that the budget
 * must pay for; once it is spent, other keys may not begin like declared ones.
 */
function otherThan(
  rules: Rules,
  options: { names: readonly (readonly string[])[]; rest: string; after: string },
): string {
  const { names, rest, after } = options;
  const next = new Map<string, (readonly string[])[]>();
  for (const [first, ...tail] of names) {
    if (first !== undefined) next.set(first, [...(next.get(first) ?? []), tail]);
  }
  const parts: string[] = names.every((name) => name.length > 0) ? ['"\\u0022"'] : [];
  const taken = union([...next.keys()].filter((unit) => !unit.startsWith("\\")).map((unit) => rangeOf(unit)));
  const excluded = union(ESCAPED, taken);
  // a class cannot exclude single characters beyond ASCII: if one is excluded, all are
  const others = subtract(excluded, ASCII).length > 0 ? classOf(subtract(ASCII, excluded)) : negatedClass(excluded);
  parts.push(`${others} ${rest}`);
  const escapes = Array.from('"\\bfnrt').filter((letter) => !next.has(`\\${letter}`));
  if (escapes.length > 0)
    parts.push(`"\\u005c" [${escapes.map((c) => grammarChar(c.codePointAt(0)!)).join("")}] ${rest}`);
  for (const [unit, tails] of next) {
    if (pay(rules.budget, "state")) parts.push(`${literal(unit)} ${otherThan(rules, { ...options, names: tails })}`);
  }
  return define(rules, `(${parts.join(" | ")})${after}`);
}

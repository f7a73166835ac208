/**
 * The rules of a grammar under construction, in xgrammar's EBNF, and the fixed rules of JSON. String rules end in a
 * look-ahead `(= …)` and are right-recursive: so the library computes in advance which tokens may close a string: a
 * mask takes 0.04 ms, but with `"\"" char* "\""` 70 ms.
 */
import { failAt } from "./read.ts";
import { INTEGER, NUMBER } from "./number-range.ts";
import { makeBudget, type Budget } from "./budget.ts";

const MAX_GRAMMAR_CHARS = 2 ** 21; // a hundred times the size of a large schema's grammar

export interface Rules {
  readonly bodies: Map<string, string>;
  /** Body, or description, → name of the rule, so that equal parts of a schema share it and pay for it once. */
  readonly names: Map<string, string>;
  readonly budget: Budget;
  chars: number;
}

/** A character that JSON strings contain unescaped. */
export const RAW_CHAR = "[^\\u0022\\u005c\\u0000-\\u001f]";

/** The text allowed after a string value, and after a key. */
export const AFTER_VALUE = " (= ws [,}\\]])";
export const AFTER_KEY = ' (= ":")';

/**
 * White space is bounded, so that a model cannot fill an answer with it: nothing, one space, or a line break with
 * indentation.
 */
const SHARED: Readonly<Record<string, readonly [body: string, ...needs: string[]]>> = {
  ws: ['"" | " " | "\\u000a" [ \\u0009]{0,20}'],
  escape: ['["\\\\/bfnrt] | "u" ([0-9a-cefA-CEF] [0-9a-fA-F] | [dD] [0-7]) [0-9a-fA-F] [0-9a-fA-F]'],
  string: ['"\\u0022" string_rest', "string_rest"],
  string_rest: [`("\\u0022" | ${RAW_CHAR} string_rest | "\\u005c" escape string_rest)${AFTER_VALUE}`, "ws", "escape"],
  key: ['"\\u0022" key_rest', "key_rest"],
  key_rest: [`("\\u0022" | ${RAW_CHAR} key_rest | "\\u005c" escape key_rest)${AFTER_KEY}`, "escape"],
  integer: [INTEGER],
  number: [NUMBER],
  pair: ['key ":" ws any', "key", "ws", "any"],
  object: ['"{" ws (pair ("," ws pair)* ws)? "}"', "pair"],
  array: ['"[" ws (any ("," ws any)* ws)? "]"', "any"],
  any: ['object | array | string | number | "true" | "false" | "null"', "object", "array", "string", "number"],
};

export const makeRules = (): Rules => ({ bodies: new Map(), names: new Map(), budget: makeBudget(), chars: 0 });

/** The name of a shared rule, which is added with its dependencies. */
export function use(rules: Rules, name: keyof typeof SHARED & string): string {
  if (rules.bodies.has(name)) return name;
  const [body, ...needs] = SHARED[name]!;
  add(rules, name, body);
  for (const need of needs) use(rules, need);
  return name;
}

/** A name for a rule whose body follows by `add`, for recursion. */
export function reserve(rules: Rules): string {
  const name = `r${rules.bodies.size}`;
  rules.bodies.set(name, "");
  return name;
}

export function add(rules: Rules, name: string, body: string): void {
  rules.chars += body.length;
  if (rules.chars > MAX_GRAMMAR_CHARS)
    failAt("$", `the schema is too complex: its grammar passes ${MAX_GRAMMAR_CHARS} characters`);
  rules.bodies.set(name, body);
}

/** The name of a rule with this body. */
export function define(rules: Rules, body: string): string {
  const known = rules.names.get(body);
  if (known) return known;
  const name = reserve(rules);
  add(rules, name, body);
  rules.names.set(body, name);
  return name;
}

/** Returns a function that restores the rules to their present state: until then, rules are only added. */
export function savepoint(rules: Rules): () => void {
  const { bodies, names, chars } = rules;
  const [bodyCount, nameCount, units] = [bodies.size, names.size, rules.budget.units];
  return () => {
    dropAfter(bodies, bodyCount);
    dropAfter(names, nameCount);
    rules.chars = chars;
    rules.budget.units = units;
  };
}

/** Keeps the first entries of a map. */
function dropAfter(map: Map<string, string>, count: number): void {
  for (const key of [...map.keys()].slice(count)) map.delete(key);
}

/** The grammar's text. */
export const textOf = (rules: Rules, root: string): string => `root ::= ${root}\n${linesOf([...rules.bodies])}`;

const linesOf = (rules: readonly (readonly [name: string, body: string])[]): string =>
  rules.map(([name, body]) => `${name} ::= ${body}\n`).join("");

/** The rule `name` with this body, and the rules that it needs. */
export function rulesOf({ bodies }: Rules, name: string, body: string): string {
  const needed = new Map([[name, body]]);
  const open = [body];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const [word] of next.matchAll(/[a-z_]\w*/g)) {
      // A word in a literal may match a rule's name, which adds one rule too many
      const found = needed.has(word) ? undefined : bodies.get(word);
      if (found === undefined) continue;
      needed.set(word, found);
      open.push(found);
    }
  }
  return linesOf([...needed]);
}

export const choice = (parts: readonly string[]): string => (parts.length === 1 ? parts[0]! : `(${parts.join(" | ")})`);

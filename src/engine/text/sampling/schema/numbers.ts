/** Numbers of a schema: bounds, and `multipleOf`. */
import { pay } from "./budget.ts";
import type { Flat } from "./merge.ts";
import { multiplesGrammar } from "./multiples.ts";
import { integerGrammar, numberGrammar, type Bound } from "./number-range.ts";
import { failAt, numberAt } from "./read.ts";
import { define, use, type Rules } from "./rules.ts";

interface NumericPlace {
  readonly type: "integer" | "number";
  readonly path: string;
  /** Records an unenforced keyword. */
  readonly leave: (place: string) => void;
}

export function numericGrammar(rules: Rules, flat: Flat, { type, path, leave }: NumericPlace): string {
  const min = boundAt(flat, { closed: "minimum", open: "exclusiveMinimum", path, nearer: Math.max });
  const max = boundAt(flat, { closed: "maximum", open: "exclusiveMaximum", path, nearer: Math.min });
  const step = numberAt(flat, "multipleOf", path);
  if (step !== undefined) {
    if (!(step > 0)) failAt(`${path}.multipleOf`, `expected a number above 0, got ${step}`);
    const multiples = multiplesGrammar(step, { min, max }, type);
    if (multiples === "") failAt(path, `no multiple of ${step} is between minimum and maximum`);
    if (multiples !== undefined && pay(rules.budget, "bounds")) return define(rules, multiples);
    leave(`${path}.multipleOf`);
  }
  if (!min && !max) return use(rules, type);
  const grammar = type === "integer" ? integerGrammar({ min, max }) : numberGrammar({ min, max });
  if (grammar === undefined) failAt(path, `no ${type} is between minimum and maximum`);
  return pay(rules.budget, "bounds") ? define(rules, grammar) : use(rules, type);
}

/** The tighter of two bounds; in draft 4 the open bound is a flag of the closed one. */
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

/** Tests of Jinja (`x is defined`), alone and inside `select` and similar filters. Behaviour: jinja2/tests.py. */
import { BINARY } from "./operators.ts";
import {
  type Budget,
  fail,
  isDict,
  isEqual,
  isObject,
  isSequence,
  isUndefined,
  numberOf,
  spendOn,
  textOf,
  typeName,
  type Value,
} from "./value.ts";

type Test = (value: Value, args: readonly Value[], budget: Budget) => boolean;

const remainder = (value: Value, divisor: Value | undefined): number => {
  const number = numberOf(value);
  const by = numberOf(divisor ?? null);
  if (number === undefined || by === undefined) throw fail(`expected a number, got ${typeName(value)}`);
  return Math.abs(number % by);
};

/** A test that is equivalent to an operator. */
const operator =
  (name: string): Test =>
  (value, [other = null], budget) =>
    BINARY[name]!(value, other, budget) === true;

const TESTS: Readonly<Record<string, Test>> = {
  defined: (value) => !isUndefined(value),
  undefined: isUndefined,
  none: (value) => value === null,
  true: (value) => value === true,
  false: (value) => value === false,
  boolean: (value) => typeof value === "boolean",
  string: (value) => typeof value === "string",
  integer: (value) => typeof value === "number",
  float: (value) => isObject(value) && value.kind === "float",
  number: (value) => numberOf(value) !== undefined,
  mapping: isDict,
  sequence: (value) => typeof value === "string" || isSequence(value) || isDict(value) || isUndefined(value),
  iterable: (value) => typeof value === "string" || isSequence(value) || isDict(value) || isUndefined(value),
  callable: (value) => isObject(value) && value.kind === "function",
  odd: (value) => remainder(value, 2) === 1,
  even: (value) => remainder(value, 2) === 0,
  divisibleby: (value, [by]) => remainder(value, by) === 0,
  lower: (value, _, budget) => isCased(textOf(value, budget), "lower", budget),
  upper: (value, _, budget) => isCased(textOf(value, budget), "upper", budget),
  escaped: () => false,
  sameas: (value, [other = null], budget) => (isObject(value) ? value === other : isEqual(value, other, budget)),
  in: operator("in"),
  eq: operator("=="),
  equalto: operator("=="),
  "==": operator("=="),
  ne: operator("!="),
  "!=": operator("!="),
  lt: operator("<"),
  lessthan: operator("<"),
  "<": operator("<"),
  le: operator("<="),
  "<=": operator("<="),
  gt: operator(">"),
  greaterthan: operator(">"),
  ">": operator(">"),
  ge: operator(">="),
  ">=": operator(">="),
};

/** @throws AppError if the test does not exist */
export function runTest(name: string, value: Value, args: readonly Value[], budget: Budget): boolean {
  if (!Object.hasOwn(TESTS, name)) throw fail(`no test named '${name}'`);
  return TESTS[name]!(value, args, budget);
}

/** Python's islower() and isupper(): at least one letter, and no letter of the other case. */
const isCased = (text: string, which: "lower" | "upper", budget: Budget): boolean => {
  spendOn(text, budget);
  const [lower, upper] = [text.toLowerCase(), text.toUpperCase()];
  return lower !== upper && text === (which === "lower" ? lower : upper);
};

/**
 * Operators of Jinja expressions, with Python's rules for operand types: arithmetic, concatenation, repetition, `%`
 * formatting, comparison, membership; attributes, subscripts and slices.
 */
import { methodOf } from "./methods.ts";
import {
  type Budget,
  compare,
  fail,
  float,
  hasAstral,
  isDict,
  isEqual,
  isObject,
  isSequence,
  isUndefined,
  itemsOf,
  type Key,
  numberOf,
  type Sequence,
  spendOn,
  textOf,
  typeName,
  presentOr,
  undefinedOf,
  type Value,
} from "./value.ts";
import { formatPercent } from "./format.ts";

type Binary = (a: Value, b: Value, budget: Budget) => Value;

/** All except `and` and `or`, which are lazy. */
export const BINARY: Readonly<Record<string, Binary>> = {
  "+": add,
  "-": arithmetic("-", (a, b) => a - b),
  "*": multiply,
  "/": (a, b) => float(numeric("/", a, b, (x, y) => x / nonZero(y))),
  "//": arithmetic("//", (a, b) => Math.floor(a / nonZero(b))),
  "%": (a, b, budget) => (typeof a === "string" ? formatPercent(a, b, budget) : modulo(a, b)),
  "**": power,
  "~": (a, b, budget) => concatenate(textOf(a, budget), textOf(b, budget), budget),
  "==": (a, b, budget) => isEqual(a, b, budget),
  "!=": (a, b, budget) => !isEqual(a, b, budget),
  "<": (a, b, budget) => compare(a, b, budget) < 0,
  "<=": (a, b, budget) => compare(a, b, budget) <= 0,
  ">": (a, b, budget) => compare(a, b, budget) > 0,
  ">=": (a, b, budget) => compare(a, b, budget) >= 0,
  in: contains,
  "not in": (a, b, budget) => !contains(a, b, budget),
};

export function negate(operator: string, value: Value): Value {
  const number = numberOf(value);
  if (number === undefined) {
    throw fail(isUndefined(value) ? value.reason : `bad operand type for unary ${operator}: '${typeName(value)}'`);
  }
  const result = operator === "-" ? -number : number;
  return isFloat(value) ? float(result) : result + 0; // + 0: ints have no negative zero
}

const isFloat = (value: Value): boolean => isObject(value) && value.kind === "float";

const misfit = (operator: string, ...values: Value[]): string => {
  const missing = values.find(isUndefined);
  if (missing) return missing.reason;
  return `unsupported operand type(s) for ${operator}: ${values.map((value) => `'${typeName(value)}'`).join(" and ")}`;
};

function numeric(operator: string, a: Value, b: Value, combine: (x: number, y: number) => number): number {
  const x = numberOf(a);
  const y = numberOf(b);
  if (x === undefined || y === undefined) throw fail(misfit(operator, a, b));
  return combine(x, y);
}

/** The result for two ints is an int, else a float. */
function arithmetic(operator: string, combine: (x: number, y: number) => number): Binary {
  return (a, b) => {
    const result = numeric(operator, a, b, combine);
    return isFloat(a) || isFloat(b) ? float(result) : safeInt(result);
  };
}

function safeInt(value: number): number {
  if (!Number.isSafeInteger(value)) throw fail("integer too large");
  return value + 0;
}

function nonZero(value: number): number {
  if (value === 0) throw fail("division by zero");
  return value;
}

function modulo(a: Value, b: Value): Value {
  return arithmetic("%", (x, y) => x - y * Math.floor(x / nonZero(y)))(a, b, UNUSED);
}

function power(a: Value, b: Value): Value {
  const result = numeric("** or pow()", a, b, (x, y) => x ** y);
  if (!Number.isFinite(result)) throw fail("result of ** is not a finite number");
  return isFloat(a) || isFloat(b) || (numberOf(b) ?? 0) < 0 ? float(result) : safeInt(result);
}

/** Budget for arithmetic, which costs nothing. */
const UNUSED: Budget = { spend() {}, check() {}, make() {} };

const sum = arithmetic("+", (a, b) => a + b);
const product = arithmetic("*", (a, b) => a * b);

function add(a: Value, b: Value, budget: Budget): Value {
  if (typeof a === "string" && typeof b === "string") return concatenate(a, b, budget);
  if (isSequence(a) && isSequence(b) && a.kind === b.kind) {
    budget.make(a.items.length + b.items.length);
    return { kind: a.kind, items: [...a.items, ...b.items] };
  }
  if (typeof a === "string" && !isUndefined(b)) {
    throw fail(`can only concatenate str (not "${typeName(b)}") to str`);
  }
  return sum(a, b, budget);
}

function concatenate(a: string, b: string, budget: Budget): string {
  budget.make(a.length + b.length);
  return a + b;
}

function multiply(a: Value, b: Value, budget: Budget): Value {
  if (typeof b === "string" || isSequence(b))
    return typeof a === "number" ? repeat(b, a, budget) : product(a, b, budget);
  if (typeof a === "string" || isSequence(a))
    return typeof b === "number" ? repeat(a, b, budget) : product(a, b, budget);
  return product(a, b, budget);
}

function repeat(value: string | Sequence, count: number, budget: Budget): Value {
  const times = Math.max(count, 0);
  budget.make((typeof value === "string" ? value.length : value.items.length) * times);
  if (typeof value === "string") return value.repeat(times);
  return { kind: value.kind, items: Array.from({ length: times }, () => value.items).flat() };
}

function contains(needle: Value, haystack: Value, budget: Budget): boolean {
  if (typeof haystack === "string") {
    budget.spend(haystack.length / 64);
    if (typeof needle === "string") return haystack.includes(needle);
    throw fail(`'in <string>' requires string as left operand, not ${typeName(needle)}`);
  }
  if (isDict(haystack)) return haystack.entries.has(keyOf(needle));
  if (!isSequence(haystack) && !isUndefined(haystack)) {
    throw fail(`argument of type '${typeName(haystack)}' is not iterable`);
  }
  return itemsOf(haystack, budget).some((item) => isEqual(item, needle, budget));
}

/** The dict key for a value. A float without a fraction equals its int. */
export function keyOf(value: Value): Key {
  if (!isObject(value)) return value;
  if (value.kind === "float") return value.value;
  throw fail(`unhashable type: '${typeName(value)}'`);
}

/** `object.name`: a method, or an attribute, or the item of that name. */
export function attributeOf(object: Value, name: string, budget: Budget): Value {
  if (isUndefined(object)) throw fail(object.reason);
  const method = methodOf(object, name, budget);
  if (method) return method;
  if (isObject(object)) {
    if (object.kind === "namespace" || object.kind === "loop") {
      const field = object.fields.get(name);
      if (field !== undefined) return field;
    }
    if (object.kind === "dict") {
      const entry = object.entries.get(name);
      if (entry !== undefined) return entry;
    }
  }
  return undefinedOf(`'${objectName(object)}' has no attribute '${name}'`);
}

/** `object[index]`. */
export function itemOf(object: Value, index: Value, budget: Budget): Value {
  if (isUndefined(object)) throw fail(object.reason);
  if (typeof object === "string" || isSequence(object)) {
    const at = numberOf(index);
    if (at !== undefined && !isFloat(index)) return elementAt(object, at, budget);
  }
  if (isDict(object) && !(isObject(index) && index.kind !== "float")) {
    const entry = object.entries.get(keyOf(index));
    if (entry !== undefined) return entry;
  }
  if (typeof index === "string") return attributeOf(object, index, budget);
  return undefinedOf(`'${objectName(object)}' has no element ${textOf(index, budget)}`);
}

function elementAt(object: string | Sequence, index: number, budget: Budget): Value {
  if (typeof object === "string") spendOn(object, budget);
  const items = typeof object === "string" ? (hasAstral(object) ? itemsOf(object, budget) : object) : object.items;
  const element = items[index < 0 ? items.length + index : index];
  return presentOr(element, `'${objectName(object)}' has no element ${index}`);
}

const objectName = (value: Value): string => (value === null ? "None" : `${typeName(value)} object`);

/** Bounds of a slice; undefined: omitted. */
export interface Bounds {
  readonly start: number | undefined;
  readonly stop: number | undefined;
  readonly step: number | undefined;
}

/** `object[start:stop:step]`. */
export function sliceOf(object: Value, bounds: Bounds, budget: Budget): Value {
  if (isUndefined(object)) throw fail(object.reason);
  if (typeof object !== "string" && !isSequence(object))
    throw fail(`'${typeName(object)}' object is not subscriptable`);
  if (typeof object === "string") spendOn(object, budget);
  const units = typeof object === "string" ? (hasAstral(object) ? [...object] : object) : object.items;
  const { start, stop, step } = clamp(bounds, units.length);
  budget.make(Math.max(0, Math.ceil((stop - start) / step)) + (typeof object === "string" ? 0 : 1));
  if (step === 1) {
    const part = units.slice(start, Math.max(start, stop));
    if (typeof object !== "string") return { kind: object.kind, items: part as readonly Value[] }; // parts of its items
    return typeof part === "string" ? part : part.join("");
  }
  const picked: Value[] = [];
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) picked.push(units[i]!);
  return typeof object === "string" ? picked.join("") : { kind: object.kind, items: picked };
}

/** Python's slice.indices(). */
function clamp(bounds: Bounds, length: number): { start: number; stop: number; step: number } {
  const step = bounds.step ?? 1;
  if (step === 0) throw fail("slice step cannot be zero");
  const [low, high] = step > 0 ? [0, length] : [-1, length - 1];
  const at = (index: number): number => Math.min(Math.max(index < 0 ? index + length : index, low), high);
  return {
    start: bounds.start === undefined ? (step > 0 ? low : high) : at(bounds.start),
    stop: bounds.stop === undefined ? (step > 0 ? high : low) : at(bounds.stop),
    step,
  };
}

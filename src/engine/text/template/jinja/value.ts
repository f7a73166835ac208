/**
 * Values of Jinja templates with Python's meaning: truth, equality, order, `str` and `repr`. An int is a number, a
 * float is boxed so that 1.0 stays a float, None is null. Each part that is visited is charged: a value may contain one
 * part many times, so its text may have an exponential length.
 */
import { AppError } from "../../../../base/index.ts";

export type Value = null | boolean | number | string | Float | Sequence | Dict | Namespace | Callable | Undefined;

interface Float {
  readonly kind: "float";
  readonly value: number;
}

/** A list or a tuple. */
export interface Sequence {
  readonly kind: "list" | "tuple";
  readonly items: readonly Value[];
  /** The same array, if the template created the list and may therefore append to it. */
  readonly own?: Value[];
}

export type Key = null | boolean | number | string;

export interface Dict {
  readonly kind: "dict";
  readonly entries: ReadonlyMap<Key, Value>;
}

/** Something with attributes: a `namespace`, whose attributes templates may set, or `loop`. */
export interface Namespace {
  readonly kind: "namespace" | "loop";
  readonly fields: Map<string, Value>;
}

export interface Callable {
  readonly kind: "function";
  readonly name: string;
  readonly call: (args: Arguments) => Value;
}

export interface Arguments {
  readonly positional: readonly Value[];
  readonly named: ReadonlyMap<string, Value>;
}

/**
 * The value of a missing name or attribute: prints an empty text, is false and empty, and fails with `reason` in any
 * other use.
 */
export interface Undefined {
  readonly kind: "undefined";
  readonly reason: string;
}

/** Bounds the work of one rendering. */
export interface Budget {
  /** @throws AppError `too_large` when the budget is spent */
  spend(steps: number): void;
  /** Checks the length of a text or list before it is made. @throws AppError `too_large` */
  check(length: number): void;
  /** Checks the length and pays for it. */
  make(length: number): void;
  /** Lists that the template created may lose items, as in llama.cpp; jinja2's sandbox forbids it. */
  readonly mayShrink?: boolean;
}

export const fail = (message: string): AppError => new AppError("bad_request", `chat template: ${message}`);

export const list = (items: readonly Value[]): Sequence => ({ kind: "list", items });
/** A list that the template may append to. */
export const ownList = (items: Value[]): Sequence => ({ kind: "list", items, own: items });
export const tuple = (items: readonly Value[]): Sequence => ({ kind: "tuple", items });
export const dict = (entries: Iterable<readonly [Key, Value]>): Dict => ({ kind: "dict", entries: new Map(entries) });
export const float = (value: number): Float => ({ kind: "float", value });
export const undefinedOf = (reason: string): Undefined => ({ kind: "undefined", reason });

/** An item of a list, possibly None; if the list has no such item, an undefined value with the reason. */
export const presentOr = (item: Value | undefined, reason: string): Value =>
  item === undefined ? undefinedOf(reason) : item;

/** Python's name for the type of a value. */
export function typeName(value: Value): string {
  if (value === null) return "NoneType";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "number") return "int";
  if (typeof value === "string") return "str";
  return value.kind === "undefined" ? "Undefined" : value.kind;
}

/** Maximum depth of values read. */
export const MAX_DEPTH = 200;

/** A JSON value. Undefined members are omitted. */
export function fromJson(json: unknown, depth = 0): Value {
  if (depth > MAX_DEPTH) throw new AppError("too_large", `chat template: value nested deeper than ${MAX_DEPTH}`);
  if (json === null || json === undefined) return null;
  if (typeof json === "boolean" || typeof json === "string") return json;
  if (typeof json === "number") return Number.isSafeInteger(json) ? json : float(json);
  if (Array.isArray(json)) return list(json.map((item) => fromJson(item, depth + 1)));
  if (typeof json !== "object") throw fail(`cannot use a ${typeof json} as a value`);
  const entries = new Map<Key, Value>();
  for (const [key, value] of Object.entries(json)) {
    if (value !== undefined) entries.set(key, fromJson(value, depth + 1));
  }
  return { kind: "dict", entries };
}

export const isObject = (value: Value): value is Exclude<Value, null | boolean | number | string> =>
  typeof value === "object" && value !== null;

export const isUndefined = (value: Value): value is Undefined => isObject(value) && value.kind === "undefined";

export const isSequence = (value: Value): value is Sequence =>
  isObject(value) && (value.kind === "list" || value.kind === "tuple");

export const isDict = (value: Value): value is Dict => isObject(value) && value.kind === "dict";

export function isTrue(value: Value): boolean {
  if (!isObject(value)) return Boolean(value);
  if (value.kind === "float") return value.value !== 0;
  if (value.kind === "dict") return value.entries.size > 0;
  if (isSequence(value)) return value.items.length > 0;
  return value.kind !== "undefined";
}

/** The number of a value in arithmetic; bools are 0 and 1. Undefined: not a number. */
export function numberOf(value: Value): number | undefined {
  if (typeof value === "number") return value;
  if (typeof value === "boolean") return value ? 1 : 0;
  return isObject(value) && value.kind === "float" ? value.value : undefined;
}

/** The items that a loop visits: items, keys, characters; empty for an undefined value. */
export function itemsOf(value: Value, budget: Budget): readonly Value[] {
  if (isSequence(value)) return value.items;
  if (isDict(value)) {
    budget.spend(value.entries.size / 8);
    return [...value.entries.keys()];
  }
  if (typeof value === "string") {
    budget.make(value.length);
    return [...value];
  }
  if (isUndefined(value)) return [];
  throw fail(`'${typeName(value)}' object is not iterable`);
}

/** Python's len(). */
export function lengthOf(value: Value): number {
  if (typeof value === "string") return hasAstral(value) ? [...value].length : value.length;
  if (isSequence(value)) return value.items.length;
  if (isDict(value)) return value.entries.size;
  if (isUndefined(value)) return 0;
  throw fail(`object of type '${typeName(value)}' has no len()`);
}

/** Charges for reading a whole text, which a loop may do repeatedly. */
export const spendOn = (text: string, budget: Budget): void => budget.spend(text.length >> 6);

/** Returns whether code points and UTF-16 units differ in number. */
export const hasAstral = (text: string): boolean => /[\ud800-\udbff]/.test(text);

export function isEqual(a: Value, b: Value, budget: Budget): boolean {
  budget.spend(1);
  const x = numberOf(a);
  if (x !== undefined) return x === numberOf(b);
  if (typeof a === "string" && typeof b === "string" && a.length === b.length) spendOn(a, budget);
  if (!isObject(a) || !isObject(b)) return a === b;
  if (isSequence(a) && isSequence(b)) {
    return (
      a.kind === b.kind &&
      a.items.length === b.items.length &&
      a.items.every((item, i) => isEqual(item, b.items[i]!, budget))
    );
  }
  if (isDict(a) && isDict(b)) {
    if (a.entries.size !== b.entries.size) return false;
    return [...a.entries].every(([key, value]) => {
      const other = b.entries.get(key);
      return other !== undefined && isEqual(value, other, budget);
    });
  }
  return a === b || (isUndefined(a) && isUndefined(b));
}

/** Negative, zero or positive, for numbers, strings and sequences. */
export function compare(a: Value, b: Value, budget: Budget): number {
  budget.spend(1);
  const x = numberOf(a);
  const y = numberOf(b);
  if (x !== undefined && y !== undefined) return x - y;
  if (typeof a === "string" && typeof b === "string") {
    spendOn(a.length < b.length ? a : b, budget);
    return a < b ? -1 : a > b ? 1 : 0;
  }
  if (isSequence(a) && isSequence(b) && a.kind === b.kind) {
    for (let i = 0; i < a.items.length && i < b.items.length; i++) {
      if (!isEqual(a.items[i]!, b.items[i]!, budget)) return compare(a.items[i]!, b.items[i]!, budget);
    }
    return a.items.length - b.items.length;
  }
  if (isUndefined(a)) throw fail(a.reason);
  if (isUndefined(b)) throw fail(b.reason);
  throw fail(`'<' not supported between instances of '${typeName(a)}' and '${typeName(b)}'`);
}

/** Python's str(): what a template prints. */
export function textOf(value: Value, budget: Budget): string {
  if (typeof value === "string") return value;
  return isUndefined(value) ? "" : reprOf(value, budget);
}

/** Python's repr(). */
export function reprOf(value: Value, budget: Budget): string {
  budget.spend(1);
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return quote(value, budget);
  switch (value.kind) {
    case "float":
      return floatText(value.value);
    case "list":
      return `[${value.items.map((item) => reprOf(item, budget)).join(", ")}]`;
    case "tuple":
      return `(${value.items.map((item) => reprOf(item, budget)).join(", ")}${value.items.length === 1 ? "," : ""})`;
    case "dict":
      return `{${[...value.entries].map(([k, v]) => `${reprOf(k, budget)}: ${reprOf(v, budget)}`).join(", ")}}`;
    case "namespace":
      return `<Namespace ${reprOf({ kind: "dict", entries: value.fields }, budget)}>`;
    case "loop":
      return "<LoopContext>";
    case "function":
      return `<function ${value.name}>`;
    case "undefined":
      return "Undefined";
    default:
      return value satisfies never;
  }
}

const ESCAPES: Readonly<Record<string, string>> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** In single quotes, or in double quotes if that saves escapes. The placeholders of ../outside.ts stay unchanged. */
function quote(text: string, budget: Budget): string {
  budget.make(text.length);
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const body = text.replace(/[\\']|(?![ \ufdd0-\ufdef])[\p{C}\p{Z}]/gu, (c) => {
    if (c === "'") return mark === "'" ? "\\'" : c;
    if (ESCAPES[c] !== undefined) return ESCAPES[c];
    const hex = c.codePointAt(0)!.toString(16);
    return hex.length <= 2
      ? `\\x${hex.padStart(2, "0")}`
      : hex.length <= 4
        ? `\\u${hex.padStart(4, "0")}`
        : `\\U${hex.padStart(8, "0")}`;
  });
  return mark + body + mark;
}

/**
 * repr of a float: the fewest digits that give the same number when read, with an exponent below 1e-4 and from 1e16 on.
 */
export function floatText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const short = value.toExponential();
  const power = Number(short.slice(short.indexOf("e") + 1));
  if (value !== 0 && (power < -4 || power >= 16)) return short.replace(/e([+-])(\d)$/, "e$10$2");
  if (Object.is(value, -0)) return "-0.0";
  const text = String(value);
  return text.includes(".") ? text : `${text}.0`;
}

/**
 * Functions of Go templates: those in text/template (funcs.go) and four more for prompt templates. `and` and `or` are
 * in the evaluator, because they evaluate their arguments lazily.
 */
import { utf8Bytes, utf8Length, utf8Text } from "../../utf8.ts";
import { AppError } from "../../../../base/index.ts";
import { type CostOf, escapeCost, outerCost, printCost, wholeCost } from "./cost.ts";
import { actionText, isPrintable, sprint, sprintf, valueText } from "./format.ts";
import { compareText, type GoValue, isTrue, toJson, typeName } from "./value.ts";

export interface FunctionContext {
  readonly now: Date;
  /** For work that the evaluator cannot derive from the arguments. */
  readonly charge: (cost: CostOf, value: GoValue) => void;
}

/** `max` absent: any number. Failures are AppErrors without a position; the evaluator adds it. */
interface GoFunction {
  readonly min: number;
  readonly max?: number;
  /** Steps for an argument; absent: the parts of lists, maps and structs are not read. */
  readonly cost?: CostOf;
  readonly call: (args: readonly GoValue[], context: FunctionContext) => GoValue;
}

const fail = (message: string): AppError => new AppError("bad_request", message);

const isNil = (value: GoValue): boolean => value === null || value === undefined;

/** Escapes the printed form of its arguments. */
const escaper = (escape: (text: string) => string): GoFunction => ({
  min: 0,
  cost: escapeCost,
  call: (args) => escape(sprint(args.map((value) => (isNil(value) ? actionText(value) : value)))),
});

const comparison = (holds: (a: GoValue, b: GoValue) => boolean): GoFunction => ({
  min: 2,
  max: 2,
  call: ([a, b]) => holds(a, b),
});

/** Includes conversion of text to bytes. */
const bytesCost: CostOf = (value, known) => (typeof value === "string" ? wholeCost(value, known) : outerCost(value));

export const FUNCTIONS: Readonly<Record<string, GoFunction>> = {
  not: { min: 1, max: 1, call: ([value]) => !isTrue(value) },
  eq: { min: 1, call: ([first, ...others]) => isEqualToAny(first, others) },
  ne: comparison((a, b) => !isEqualToAny(a, [b])),
  lt: comparison(isLess),
  le: comparison((a, b) => isLess(a, b) || isEqualToAny(a, [b])),
  gt: comparison((a, b) => !(isLess(a, b) || isEqualToAny(a, [b]))),
  ge: comparison((a, b) => !isLess(a, b)),
  len: { min: 1, max: 1, call: ([value]) => BigInt(lengthOf(value)) },
  index: {
    min: 1,
    cost: bytesCost,
    call: ([item, ...indexes]) => indexes.reduce(indexOne, requireValue(item, "index")),
  },
  slice: { min: 1, cost: bytesCost, call: ([item, ...indexes]) => slice(requireValue(item, "slice"), indexes) },
  print: { min: 0, cost: printCost, call: sprint },
  println: { min: 0, cost: printCost, call: (args) => `${args.map(valueText).join(" ")}\n` },
  printf: { min: 1, call: ([format, ...args], { charge }) => sprintf(requireFormat(format), args, charge) },
  html: escaper(escapeHtml),
  js: escaper(escapeJs),
  urlquery: escaper(escapeQuery),
  call: { min: 1, call: ([value]) => notCallable(value) },
  json: { min: 1, max: 1, cost: wholeCost, call: ([value]) => toJson(value) },
  currentDate: { min: 0, call: (_, { now }) => isoDate(now) },
  yesterdayDate: {
    min: 0,
    call: (_, { now }) => isoDate(new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1)),
  },
  toTypeScriptType: { min: 1, max: 1, cost: wholeCost, call: ([value]) => typeScriptType(value) },
};

type Kind = "bool" | "int" | "float" | "string";
const KINDS: Readonly<Record<string, Kind>> = { boolean: "bool", bigint: "int", number: "float", string: "string" };

/** Go compares pointers by their targets. */
const isPointer = (value: GoValue): boolean => typeName(value).startsWith("*");

/** a == b || a == c …; only nil equals nil. */
function isEqualToAny(first: GoValue, others: readonly GoValue[]): boolean {
  if (others.length === 0) throw fail("missing argument for comparison");
  const kind = KINDS[typeof first];
  for (const other of others) {
    if (isNil(first) || isNil(other)) {
      if (isNil(first) && isNil(other)) return true;
      continue;
    }
    if (kind !== KINDS[typeof other]) throw fail("incompatible types for comparison");
    const unfit = [first, other].find((value) => typeof value === "object" && !isPointer(value));
    if (unfit) throw fail(`non-comparable type ${typeName(unfit)}`);
    if (first === other) return true;
  }
  return false;
}

function isLess(a: GoValue, b: GoValue): boolean {
  const kind = KINDS[typeof a];
  if (kind === undefined || KINDS[typeof b] === undefined) throw fail("invalid type for comparison");
  if (kind !== KINDS[typeof b]) throw fail("incompatible types for comparison");
  if (kind === "bool") throw fail("invalid type for comparison");
  if (kind === "string") return compareText(a as string, b as string) < 0; // both kinds were checked
  return (a as number | bigint) < (b as number | bigint);
}

function requireValue(value: GoValue, name: string): GoValue {
  if (isNil(value)) throw fail(`${name} of untyped nil`);
  return value;
}

function requireFormat(format: GoValue): string {
  if (typeof format === "string") return format;
  throw fail(`wrong type for value; expected string; got ${typeName(format)}`);
}

function notCallable(value: GoValue): never {
  throw fail(isNil(value) ? "call of nil" : `non-function of type ${typeName(value)}`);
}

/** For a string: bytes. */
function lengthOf(value: GoValue): number {
  if (isNil(value)) throw fail("len of nil pointer");
  if (typeof value === "string") return utf8Length(value);
  if (typeof value === "object" && value !== null) {
    if (value.kind === "list") return value.items.length;
    if (value.kind === "map") return value.entries.size;
  }
  throw fail(`len of type ${typeName(value)}`);
}

function indexOne(item: GoValue, index: GoValue): GoValue {
  if (isNil(item)) throw fail("index of nil pointer");
  if (typeof item === "string") return BigInt(utf8Bytes(item)[checkIndex(index, utf8Length(item) - 1)]!);
  if (typeof item === "object" && item !== null) {
    if (item.kind === "list") return item.items[checkIndex(index, item.items.length - 1)];
    if (item.kind === "map") {
      if (typeof index !== "string") throw fail(`value has type ${typeName(index)}; should be string`);
      return item.entries.get(index) ?? item.missing ?? null;
    }
  }
  throw fail(`can't index item of type ${typeName(item)}`);
}

/** `slice x i j k` is x[i:j:k]. Strings are cut at bytes; a partial character becomes U+FFFD. */
function slice(item: GoValue, indexes: readonly GoValue[]): GoValue {
  if (indexes.length > 3) throw fail(`too many slice indexes: ${indexes.length}`);
  const isText = typeof item === "string";
  if (isText && indexes.length === 3) throw fail("cannot 3-index slice a string");
  const isList = typeof item === "object" && item !== null && item.kind === "list";
  if (!isText && !isList) throw fail(`can't slice item of type ${typeName(item)}`);
  const length = isText ? utf8Length(item) : item.items.length;
  const [start = 0, stop = length, capacity = length] = indexes.map((index) => checkIndex(index, length));
  if (start > stop) throw fail(`invalid slice index: ${start} > ${stop}`);
  if (stop > capacity) throw fail(`invalid slice index: ${stop} > ${capacity}`);
  if (!isText) return { ...item, items: item.items.slice(start, stop) };
  return length === item.length ? item.slice(start, stop) : utf8Text(utf8Bytes(item).subarray(start, stop));
}

function checkIndex(index: GoValue, highest: number): number {
  if (isNil(index)) throw fail("cannot index slice/array with nil");
  if (typeof index !== "bigint") throw fail(`cannot index slice/array with type ${typeName(index)}`);
  if (index < 0n || index > BigInt(highest)) throw fail(`index out of range: ${index}`);
  return Number(index);
}

const HTML: Readonly<Record<string, string>> = {
  "\0": "\ufffd",
  '"': "&#34;",
  "'": "&#39;",
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
};

function escapeHtml(text: string): string {
  return text.replace(/[\0"'&<>]/g, (c) => HTML[c]!);
}

function escapeJs(text: string): string {
  return text.replace(/[\\'"<>&=]|\p{Cc}|\P{ASCII}/gu, (c) => {
    if (c === "\\" || c === "'" || c === '"') return `\\${c}`;
    if (c === "\x7f" || (c > "\x7f" && isPrintable(c))) return c;
    return `\\u${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`;
  });
}

/** net/url.QueryEscape: all but letters, digits, `-_.~`, with `+` for a space. */
function escapeQuery(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%20", "+");
}

const two = (n: number): string => String(n).padStart(2, "0");

/** `YYYY-MM-DD` in local time. */
const isoDate = (date: Date): string => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;

const TYPESCRIPT: Readonly<Record<string, string>> = {
  string: "string",
  number: "number",
  integer: "number",
  boolean: "boolean",
  array: "any[]",
  object: "Record<string, any>",
  null: "null",
};

/** The TypeScript type of a schema property: `string | null`, `any[]`, `Record<string, any>`. */
function typeScriptType(property: GoValue): string {
  if (typeof property !== "object" || property === null) return "any";
  const fields = property.kind === "map" ? property.entries : property.kind === "struct" ? property.fields : new Map();
  const anyOf: GoValue = fields.get("AnyOf") ?? fields.get("anyOf");
  if (typeof anyOf === "object" && anyOf?.kind === "list" && anyOf.items.length > 0) {
    return anyOf.items.map(typeScriptType).join(" | ");
  }
  const type: GoValue = fields.get("Type") ?? fields.get("type");
  const names = typeof type === "object" && type?.kind === "list" ? type.items : [type];
  return names.map((name) => (typeof name === "string" ? (TYPESCRIPT[name] ?? "any") : "any")).join(" | ") || "any";
}

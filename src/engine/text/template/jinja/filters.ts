/** Filters of Jinja (`x | name(…)`). Behaviour: jinja2/filters.py, with `tojson` as in transformers. */
import { formatPercent } from "./format.ts";
import { toJson } from "./json.ts";
import { argument, capitalize, center, intArgument, joinTexts, replace, strip, titleCase } from "./methods.ts";
import { BINARY, itemOf } from "./operators.ts";
import { runTest } from "./tests.ts";
import {
  type Arguments,
  type Budget,
  compare,
  fail,
  float,
  isDict,
  isEqual,
  isObject,
  isSequence,
  isTrue,
  isUndefined,
  itemsOf,
  lengthOf,
  spendOn,
  list,
  numberOf,
  textOf,
  tuple,
  typeName,
  presentOr,
  undefinedOf,
  type Value,
} from "./value.ts";

type Filter = (value: Value, args: Arguments, budget: Budget) => Value;

/** Steps for reading a whole value once. */
function costOf(value: Value): number {
  if (typeof value === "string") return value.length / 64;
  if (isSequence(value)) return value.items.length / 8;
  return isDict(value) ? value.entries.size / 8 : 0;
}

/** @throws AppError if the filter does not exist */
export function runFilter(name: string, value: Value, args: Arguments, budget: Budget): Value {
  budget.spend(1 + costOf(value));
  const test = /^is (not )?(.*)$/.exec(name); // a test with arguments, see parse.ts
  if (test) return runTest(test[2]!, value, args.positional, budget) !== Boolean(test[1]);
  if (!Object.hasOwn(FILTERS, name)) throw fail(`no filter named '${name}'`);
  return FILTERS[name]!(value, args, budget);
}

const text = (change: (text: string, args: Arguments, budget: Budget) => string): Filter => {
  return (value, args, budget) => change(textOf(value, budget), args, budget);
};

const length: Filter = (value, _, budget) => {
  if (typeof value === "string") spendOn(value, budget);
  return lengthOf(value);
};
const orDefault: Filter = (value, args) => {
  const missing = isUndefined(value) || (isTrue(argument(args, 1, "boolean") ?? false) && !isTrue(value));
  return missing ? givenOr(argument(args, 0, "default_value"), "") : value;
};
/** The given value, including None. */
const givenOr = (value: Value | undefined, fallback: Value): Value => (value === undefined ? fallback : value);
/** Escaping a character costs more than reading it. */
const escaping = (change: (text: string) => string): Filter =>
  text((value, _, budget) => {
    budget.spend(value.length / 4);
    return change(value);
  });
const escape = escaping((value) => value.replace(/[&<>"']/g, (c) => HTML[c]!));

const HTML: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;" };

const FILTERS: Readonly<Record<string, Filter>> = {
  abs: (value) => {
    const number = numberOf(value);
    if (number === undefined) throw fail(`bad operand type for abs(): '${typeName(value)}'`);
    return isObject(value) ? float(Math.abs(number)) : Math.abs(number);
  },
  batch: (value, args, budget) => {
    const size = Math.max(intArgument(args, 0, "linecount") ?? 1, 1);
    const items = itemsOf(value, budget);
    return list(
      Array.from({ length: Math.ceil(items.length / size) }, (_, i) => list(items.slice(i * size, (i + 1) * size))),
    );
  },
  capitalize: text(capitalize),
  center: text((value, args, budget) => center(value, intArgument(args, 0, "width") ?? 80, budget)),
  count: length,
  d: orDefault,
  default: orDefault,
  dictsort: dictSort,
  e: escape,
  escape,
  first: (value, _, budget) => presentOr(itemsOf(value, budget)[0], "No first item, sequence was empty."),
  float: (value, args) => parseFloatOr(value, givenOr(argument(args, 0, "default"), float(0))),
  format: (value, args, budget) => formatPercent(textOf(value, budget), tuple(args.positional), budget),
  groupby: groupBy,
  indent: text(indent),
  int: (value, args) => parseIntOr(value, givenOr(argument(args, 0, "default"), 0), intArgument(args, 1, "base") ?? 10),
  items: (value) => {
    if (isUndefined(value)) return list([]);
    if (!isDict(value)) throw fail("can only get item pairs from a mapping");
    return list([...value.entries].map(([key, item]) => tuple([key, item])));
  },
  join: (value, args, budget) => {
    const by = argument(args, 1, "attribute");
    const parts = itemsOf(value, budget).map((item) => textOf(by ? attributePath(item, by, budget) : item, budget));
    return joinTexts(parts, textOf(givenOr(argument(args, 0, "d"), ""), budget), budget);
  },
  last: (value, _, budget) => presentOr(itemsOf(value, budget).at(-1), "No last item, sequence was empty."),
  length,
  list: (value, _, budget) => list(itemsOf(value, budget)),
  lower: text((value) => value.toLowerCase()),
  map: mapItems,
  max: extreme((order) => order > 0),
  min: extreme((order) => order < 0),
  reject: (value, args, budget) => list(givenItems(value, budget).filter((item) => !passes(item, args, 0, budget))),
  rejectattr: (value, args, budget) => filterBy(value, args, budget, false),
  replace: text(replace),
  reverse: (value, _, budget) => {
    const items = [...itemsOf(value, budget)].reverse();
    return typeof value === "string" ? items.join("") : list(items);
  },
  round,
  safe: (value) => value,
  select: (value, args, budget) => list(givenItems(value, budget).filter((item) => passes(item, args, 0, budget))),
  selectattr: (value, args, budget) => filterBy(value, args, budget, true),
  sort,
  string: (value, _, budget) => textOf(value, budget),
  sum: (value, args, budget) => {
    const by = argument(args, 0, "attribute");
    const start = argument(args, 1, "start") ?? 0;
    const add = BINARY["+"]!;
    return itemsOf(value, budget).reduce<Value>(
      (total, item) => add(total, by ? attributePath(item, by, budget) : item, budget),
      start,
    );
  },
  title: text(titleCase),
  tojson: (value, args, budget) => {
    const separators = argument(args, 2, "separators") ?? null;
    const indentation = argument(args, 1, "indent") ?? null;
    const [item, key] = isSequence(separators) ? separators.items : [];
    const style = {
      indent: typeof indentation === "number" ? " ".repeat(boundedIndent(indentation)) : textOrNone(indentation),
      itemSeparator: typeof item === "string" ? item : indentation === null ? ", " : ",",
      keySeparator: typeof key === "string" ? key : ": ",
      ensureAscii: isTrue(argument(args, 0, "ensure_ascii") ?? false),
      sortKeys: isTrue(argument(args, 3, "sort_keys") ?? false),
    };
    return toJson(value, style, budget);
  },
  trim: text((value, args, budget) => strip(value, args, { start: true, end: true, budget })),
  truncate: text(truncate),
  unique: (value, args, budget) => {
    const by = argument(args, 1, "attribute");
    const kept: { item: Value; key: Value }[] = [];
    for (const item of itemsOf(value, budget)) {
      const key = sortKey(by ? attributePath(item, by, budget) : item, args, { at: 0, budget });
      if (!kept.some((other) => isEqual(other.key, key, budget))) kept.push({ item, key });
    }
    return list(kept.map(({ item }) => item));
  },
  upper: text((value) => value.toUpperCase()),
  urlencode: escaping((value) =>
    encodeURIComponent(value.toWellFormed())
      .replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
      .replaceAll("%2F", "/"),
  ),
  wordcount: (value, _, budget) => textOf(value, budget).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0,
};

const textOrNone = (value: Value): string | undefined => (typeof value === "string" ? value : undefined);

/** Limit for indentation, which would only inflate a template's output. */
function boundedIndent(width: number): number {
  if (width > 100) throw fail(`indent of ${width} is over 100`);
  return Math.max(width, 0);
}

/** Follows `a.b.0` step by step; an int is one step. */
function attributePath(item: Value, path: Value, budget: Budget): Value {
  if (typeof path !== "string") return itemOf(item, path, budget);
  budget.spend(1 + path.length / 8);
  return path
    .split(".")
    .reduce<Value>((value, name) => itemOf(value, /^\d+$/.test(name) ? Number(name) : name, budget), item);
}

/**
 * Returns whether the test named by argument `at` holds, with the arguments after it; without a name, whether the value
 * is true.
 */
function passes(value: Value, args: Arguments, at: number, budget: Budget): boolean {
  const name = args.positional[at];
  if (name === undefined) return isTrue(value);
  return runTest(textOf(name, budget), value, args.positional.slice(at + 1), budget);
}

function filterBy(value: Value, args: Arguments, budget: Budget, wanted: boolean): Value {
  const path = args.positional[0];
  if (path === undefined) throw fail("missing the name of an attribute");
  const items = givenItems(value, budget);
  return list(items.filter((item) => passes(attributePath(item, path, budget), args, 1, budget) === wanted));
}

/** The input of `map`, `select` and `reject`, where None counts as empty, though it is an error elsewhere. */
const givenItems = (value: Value, budget: Budget): readonly Value[] => (value === null ? [] : itemsOf(value, budget));

function mapItems(value: Value, args: Arguments, budget: Budget): Value {
  const items = givenItems(value, budget);
  budget.make(items.length);
  const path = args.named.get("attribute");
  if (path !== undefined) {
    const fallback = args.named.get("default");
    return list(
      items.map((item) => {
        const found = attributePath(item, path, budget);
        return isUndefined(found) && fallback !== undefined ? fallback : found;
      }),
    );
  }
  const name = args.positional[0];
  if (typeof name !== "string") throw fail("map requires the name of a filter or an attribute");
  const rest = { positional: args.positional.slice(1), named: args.named };
  return list(items.map((item) => runFilter(name, item, rest, budget)));
}

/** The sort key of an item: text in lower case unless the argument `case_sensitive` says otherwise. */
function sortKey(value: Value, args: Arguments, { at, budget }: { at: number; budget: Budget }): Value {
  const sensitive = isTrue(argument(args, at, "case_sensitive") ?? false);
  if (typeof value !== "string" || sensitive) return value;
  spendOn(value, budget);
  return value.toLowerCase();
}

function sort(value: Value, args: Arguments, budget: Budget): Value {
  const by = argument(args, 2, "attribute") ?? null;
  const sign = isTrue(argument(args, 0, "reverse") ?? false) ? -1 : 1;
  const keyed = itemsOf(value, budget).map((item) => ({
    item,
    key: sortKey(by === null ? item : attributePath(item, by, budget), args, { at: 1, budget }),
  }));
  keyed.sort((a, b) => sign * compare(a.key, b.key, budget));
  return list(keyed.map(({ item }) => item));
}

function dictSort(value: Value, args: Arguments, budget: Budget): Value {
  if (!isDict(value)) throw fail(`'${typeName(value)}' object has no attribute 'items'`);
  const at = argument(args, 1, "by") === "value" ? 1 : 0;
  const sign = isTrue(argument(args, 2, "reverse") ?? false) ? -1 : 1;
  const pairs = [...value.entries].map((pair) => ({ pair, key: sortKey(pair[at], args, { at: 0, budget }) }));
  pairs.sort((a, b) => sign * compare(a.key, b.key, budget));
  return list(pairs.map(({ pair }) => tuple(pair)));
}

/** Pairs of a key and the items that have it, in the order of the keys. */
function groupBy(value: Value, args: Arguments, budget: Budget): Value {
  const by = argument(args, 0, "attribute") ?? "";
  const keyed = itemsOf(value, budget).map((item) => ({ item, key: attributePath(item, by, budget) }));
  keyed.sort((a, b) => compare(a.key, b.key, budget));
  const groups: { key: Value; items: Value[] }[] = [];
  for (const { item, key } of keyed) {
    const last = groups.at(-1);
    if (last && isEqual(last.key, key, budget)) last.items.push(item);
    else groups.push({ key, items: [item] });
  }
  return list(groups.map(({ key, items }) => tuple([key, list(items)])));
}

function extreme(isBetter: (order: number) => boolean): Filter {
  return (value, args, budget) => {
    const by = argument(args, 1, "attribute");
    const keyed = itemsOf(value, budget).map((item) => ({
      item,
      key: sortKey(by ? attributePath(item, by, budget) : item, args, { at: 0, budget }),
    }));
    const [first, ...rest] = keyed;
    if (!first) return undefinedOf("No aggregated item, sequence was empty.");
    return rest.reduce((best, one) => (isBetter(compare(one.key, best.key, budget)) ? one : best), first).item;
  };
}

function indent(value: string, args: Arguments, budget: Budget): string {
  const width = argument(args, 0, "width") ?? 4;
  const indention = typeof width === "string" ? width : " ".repeat(boundedIndent(numberOf(width) ?? 4));
  const first = isTrue(argument(args, 1, "first") ?? false);
  const blank = isTrue(argument(args, 2, "blank") ?? false);
  const lines = value.split("\n");
  budget.make(value.length + lines.length * indention.length);
  return lines.map((line, i) => ((i === 0 ? first : blank || line !== "") ? indention + line : line)).join("\n");
}

/** Rounds halves to even, as Python does. */
function round(value: Value, args: Arguments): Value {
  const number = numberOf(value);
  if (number === undefined) throw fail(`type ${typeName(value)} doesn't define __round__ method`);
  const scale = 10 ** (intArgument(args, 0, "precision") ?? 0);
  const method = argument(args, 1, "method") ?? "common";
  if (method === "ceil") return float(Math.ceil(number * scale) / scale);
  if (method === "floor") return float(Math.floor(number * scale) / scale);
  const scaled = number * scale;
  const floor = Math.floor(scaled);
  const isHalf = scaled - floor === 0.5;
  const rounded = (isHalf ? floor + (floor % 2 === 0 ? 0 : 1) : Math.round(scaled)) / scale;
  return isObject(value) ? float(rounded) : rounded;
}

function truncate(value: string, args: Arguments): string {
  const limit = intArgument(args, 0, "length") ?? 255;
  const end = textOrNone(argument(args, 2, "end") ?? null) ?? "...";
  const leeway = intArgument(args, 3, "leeway") ?? 5;
  const characters = [...value];
  if (characters.length <= limit + leeway) return value;
  const head = characters.slice(0, Math.max(limit - [...end].length, 0)).join("");
  if (isTrue(argument(args, 1, "killwords") ?? false)) return head + end;
  const space = head.lastIndexOf(" ");
  return (space < 0 ? head : head.slice(0, space)) + end;
}

function parseIntOr(value: Value, fallback: Value, base: number): Value {
  const number = numberOf(value);
  if (number !== undefined) return Number.isFinite(number) ? Math.trunc(number) : fallback;
  if (typeof value !== "string") return fallback;
  const plain = value.trim().replaceAll("_", "");
  if (base === 10) return /^[+-]?\d+(\.\d*)?([eE][+-]?\d+)?$/.test(plain) ? Math.trunc(Number(plain)) : fallback;
  const parsed = parseInt(plain, base >= 2 && base <= 36 ? base : 10);
  return Number.isNaN(parsed) ? fallback : parsed;
}

function parseFloatOr(value: Value, fallback: Value): Value {
  const number = numberOf(value);
  if (number !== undefined) return float(number);
  const isNumber = typeof value === "string" && /^\s*[+-]?(\d[\d_]*(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$/.test(value);
  return isNumber ? float(Number(value.replaceAll("_", ""))) : fallback;
}

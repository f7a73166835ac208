/**
 * Methods of strings, dicts and lists, as in Python. Methods that change a list or dict are missing, because chat
 * templates run in a sandbox; `append` and `pop` work on lists that the template created itself, which published
 * templates rely on.
 */
import { formatBraces } from "./format.ts";
import {
  type Arguments,
  type Budget,
  type Callable,
  type Dict,
  fail,
  isDict,
  isEqual,
  isObject,
  isSequence,
  itemsOf,
  lengthOf,
  list,
  MAX_DEPTH,
  type Sequence,
  spendOn,
  textOf,
  tuple,
  typeName,
  undefinedOf,
  type Value,
} from "./value.ts";

type Method<T> = (self: T, args: Arguments, budget: Budget) => Value;

/** The method with that name, bound to a value. Undefined: the value has no such method. */
export function methodOf(self: Value, name: string, budget: Budget): Callable | undefined {
  if (typeof self === "string") {
    spendOn(self, budget);
    return bind(STRING, self, name, budget);
  }
  if (isDict(self)) return bind(DICT, self, name, budget);
  return isSequence(self) ? bind(SEQUENCE, self, name, budget) : undefined;
}

function bind<T>(
  methods: Readonly<Record<string, Method<T>>>,
  self: T,
  name: string,
  budget: Budget,
): Callable | undefined {
  if (!Object.hasOwn(methods, name)) return undefined;
  const method = methods[name]!;
  return { kind: "function", name, call: (args) => method(self, args, budget) };
}

/** Argument by position or name. */
export const argument = (args: Arguments, index: number, name: string): Value | undefined =>
  index < args.positional.length ? args.positional[index] : args.named.get(name);

/** @throws AppError if it is missing or not a string */
export function textArgument(args: Arguments, index: number, name: string): string {
  const value = argument(args, index, name);
  if (typeof value === "string") return value;
  throw fail(`expected a string as argument ${index + 1}, got ${value === undefined ? "nothing" : typeName(value)}`);
}

/** An optional int. */
export function intArgument(args: Arguments, index: number, name: string): number | undefined {
  const value = argument(args, index, name);
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" || typeof value === "boolean") return Number(value);
  throw fail(`expected an int as argument ${index + 1}, got ${typeName(value)}`);
}

const test =
  (pattern: RegExp): Method<string> =>
  (self) =>
    pattern.test(self);

const STRING: Readonly<Record<string, Method<string>>> = {
  upper: (self) => self.toUpperCase(),
  lower: (self) => self.toLowerCase(),
  casefold: (self) => self.toLowerCase(),
  title: (self) => titleCase(self),
  capitalize: (self) => capitalize(self),
  swapcase: (self) => self.replace(/\p{L}/gu, (c) => (c === c.toUpperCase() ? c.toLowerCase() : c.toUpperCase())),
  strip: (self, args, budget) => strip(self, args, { start: true, end: true, budget }),
  lstrip: (self, args, budget) => strip(self, args, { start: true, end: false, budget }),
  rstrip: (self, args, budget) => strip(self, args, { start: false, end: true, budget }),
  startswith: (self, args, budget) => affixes(args, budget).some((affix) => self.startsWith(affix)),
  endswith: (self, args, budget) => affixes(args, budget).some((affix) => self.endsWith(affix)),
  removeprefix: (self, args) => {
    const prefix = textArgument(args, 0, "prefix");
    return self.startsWith(prefix) ? self.slice(prefix.length) : self;
  },
  removesuffix: (self, args) => {
    const suffix = textArgument(args, 0, "suffix");
    return suffix !== "" && self.endsWith(suffix) ? self.slice(0, -suffix.length) : self;
  },
  split: (self, args, budget) => list(split(self, args, budget)),
  rsplit: (self, args, budget) => list(rsplit(self, args, budget)),
  splitlines: (self, _, budget) => {
    budget.make(self.length);
    const lines = self.split(/\r\n|[\n\r]/);
    if (lines.at(-1) === "") lines.pop(); // after the last line break
    return list(lines);
  },
  partition: (self, args) => partition(self, self.indexOf(textArgument(args, 0, "sep")), args, "first"),
  rpartition: (self, args) => partition(self, self.lastIndexOf(textArgument(args, 0, "sep")), args, "last"),
  replace: (self, args, budget) => replace(self, args, budget),
  join: (self, args, budget) => {
    const parts = itemsOf(argument(args, 0, "iterable") ?? undefinedOf("join() takes one argument"), budget);
    return joinTexts(
      parts.map((part, i) => {
        if (typeof part === "string") return part;
        throw fail(`sequence item ${i}: expected str instance, ${typeName(part)} found`);
      }),
      self,
      budget,
    );
  },
  find: (self, args) => indexOfText(self, self.indexOf(textArgument(args, 0, "sub"))),
  rfind: (self, args) => indexOfText(self, self.lastIndexOf(textArgument(args, 0, "sub"))),
  index: (self, args) => {
    const at = self.indexOf(textArgument(args, 0, "sub"));
    if (at < 0) throw fail("substring not found");
    return indexOfText(self, at);
  },
  count: (self, args, budget) => {
    budget.make(self.length);
    const sub = textArgument(args, 0, "sub");
    return sub === "" ? lengthOf(self) + 1 : self.split(sub).length - 1;
  },
  format: (self, args, budget) => formatBraces(self, args, budget),
  zfill: (self, args, budget) => {
    const width = boundedWidth(intArgument(args, 0, "width") ?? 0, budget);
    return /^[+-]/.test(self) ? self[0] + self.slice(1).padStart(width - 1, "0") : self.padStart(width, "0");
  },
  ljust: (self, args, budget) => self.padEnd(boundedWidth(intArgument(args, 0, "width") ?? 0, budget)),
  rjust: (self, args, budget) => self.padStart(boundedWidth(intArgument(args, 0, "width") ?? 0, budget)),
  center: (self, args, budget) => center(self, intArgument(args, 0, "width") ?? 0, budget),
  isdigit: test(/^\p{Nd}+$/u),
  isdecimal: test(/^\p{Nd}+$/u),
  isnumeric: test(/^\p{N}+$/u),
  isalpha: test(/^\p{L}+$/u),
  isalnum: test(/^[\p{L}\p{N}]+$/u),
  isspace: test(/^\s+$/u),
  islower: (self) => self !== self.toUpperCase() && self === self.toLowerCase(),
  isupper: (self) => self !== self.toLowerCase() && self === self.toUpperCase(),
};

const DICT: Readonly<Record<string, Method<Dict>>> = {
  keys: (self) => list([...self.entries.keys()]),
  values: (self) => list([...self.entries.values()]),
  items: (self) => list([...self.entries].map(([key, value]) => tuple([key, value]))),
  get: (self, args) => {
    const key = argument(args, 0, "key");
    const found = key === undefined || isObject(key) ? undefined : self.entries.get(key);
    return found === undefined ? (argument(args, 1, "default") ?? null) : found;
  },
  copy: (self) => self,
};

const SEQUENCE: Readonly<Record<string, Method<Sequence>>> = {
  index: (self, args, budget) => {
    const wanted = argument(args, 0, "value") ?? null;
    const at = self.items.findIndex((item) => isEqual(item, wanted, budget));
    if (at < 0) throw fail("value is not in list");
    return at;
  },
  count: (self, args, budget) =>
    self.items.filter((item) => isEqual(item, argument(args, 0, "value") ?? null, budget)).length,
  copy: (self) => self,
  append: (self, args, budget) => append(self, argument(args, 0, "object") ?? null, budget),
  pop: (self, args, budget) => pop(self, argument(args, 0, "index") ?? -1, budget),
};

/** Only lists that the template created can grow: the caller's values never change. */
function append(self: Sequence, value: Value, budget: Budget): Value {
  if (!self.own) throw fail("append: only a list that the template made itself can grow");
  if (holds(value, self, budget)) throw fail("append: a list cannot be an item of itself");
  budget.check(self.items.length + 1);
  self.own.push(value);
  return null;
}

function pop(self: Sequence, index: Value, { mayShrink }: Budget): Value {
  if (!mayShrink) throw fail("'list object' has no attribute 'pop'");
  if (!self.own) throw fail("pop: only a list that the template made itself can shrink");
  if (typeof index !== "number" || !Number.isInteger(index)) throw fail("pop: expected a whole number");
  const at = index < 0 ? index + self.own.length : index;
  if (at < 0 || at >= self.own.length) throw fail(`pop: expected one of ${self.own.length} items, got ${index}`);
  return self.own.splice(at, 1)[0]!; // checked above
}

/** Returns whether a value is the searched list or contains it. */
function holds(value: Value, wanted: Sequence, budget: Budget, depth = 0): boolean {
  budget.spend(1);
  if (depth > MAX_DEPTH) throw fail(`append: lists nested deeper than ${MAX_DEPTH}`);
  if (value === wanted) return true;
  return partsOf(value).some((part) => holds(part, wanted, budget, depth + 1));
}

function partsOf(value: Value): readonly Value[] {
  if (isSequence(value)) return value.items;
  if (isDict(value)) return [...value.entries.values()];
  return isObject(value) && "fields" in value ? [...value.fields.values()] : [];
}

export const titleCase = (text: string): string =>
  text.replace(/\p{L}+/gu, (word) => word[0]!.toUpperCase() + word.slice(1).toLowerCase());

export const capitalize = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1).toLowerCase();

/** Strips the given characters, or white space, from the chosen ends. */
export function strip(text: string, args: Arguments, ends: { start: boolean; end: boolean; budget: Budget }): string {
  const chars = argument(args, 0, "chars") ?? null;
  if (typeof chars !== "string") {
    const begun = ends.start ? text.trimStart() : text;
    return ends.end ? begun.trimEnd() : begun;
  }
  ends.budget.spend(chars.length + text.length / 8);
  const stripped = new Set(chars.split(""));
  let start = 0;
  let end = text.length;
  while (ends.start && start < end && stripped.has(text[start]!)) start++;
  while (ends.end && end > start && stripped.has(text[end - 1]!)) end--;
  return text.slice(start, end);
}

/** One prefix or suffix, or a tuple of them. */
function affixes(args: Arguments, budget: Budget): string[] {
  const value = argument(args, 0, "prefix") ?? null;
  const items =
    typeof value === "string" ? [value] : isObject(value) && value.kind === "tuple" ? value.items : undefined;
  if (!items) throw fail(`expected a string or a tuple of strings, got ${typeName(value)}`);
  return items.map((item) => textOf(item, budget));
}

function split(text: string, args: Arguments, budget: Budget): string[] {
  budget.make(text.length);
  const separator = argument(args, 0, "sep") ?? null;
  const max = intArgument(args, 1, "maxsplit") ?? -1;
  if (separator === null) {
    const words = text.trim() === "" ? [] : text.trim().split(/\s+/);
    if (max < 0 || words.length <= max + 1) return words;
    const word = /\S+\s+/g;
    for (let i = 0; i < max; i++) word.exec(text);
    return [...words.slice(0, max), max === 0 ? text.trimStart() : text.slice(word.lastIndex)];
  }
  if (typeof separator !== "string" || separator === "") throw fail("empty separator");
  const parts = text.split(separator);
  return max < 0 || parts.length <= max + 1 ? parts : [...parts.slice(0, max), parts.slice(max).join(separator)];
}

function rsplit(text: string, args: Arguments, budget: Budget): string[] {
  const max = intArgument(args, 1, "maxsplit") ?? -1;
  const parts = split(text, { positional: args.positional.slice(0, 1), named: new Map() }, budget);
  const separator = argument(args, 0, "sep") ?? null;
  if (max < 0 || parts.length <= max + 1) return parts;
  const kept = parts.length - max;
  return [parts.slice(0, kept).join(typeof separator === "string" ? separator : " "), ...parts.slice(kept)];
}

function partition(text: string, at: number, args: Arguments, side: "first" | "last"): Value {
  const separator = textArgument(args, 0, "sep");
  if (at < 0) return tuple(side === "first" ? [text, "", ""] : ["", "", text]);
  return tuple([text.slice(0, at), separator, text.slice(at + separator.length)]);
}

/** `replace(old, new, count)`; an empty `old` matches before every character and at the end. */
export function replace(text: string, args: Arguments, budget: Budget): string {
  const old = textArgument(args, 0, "old");
  const replacement = textArgument(args, 1, "new");
  const count = intArgument(args, 2, "count") ?? -1;
  budget.spend(text.length / 64);
  const pieces = old === "" ? ["", ...text, ""] : text.split(old);
  const times = count < 0 ? pieces.length - 1 : Math.min(count, pieces.length - 1);
  budget.make(text.length + times * replacement.length);
  const head = pieces.slice(0, times + 1).join(replacement);
  return times === pieces.length - 1 ? head : head + old + pieces.slice(times + 1).join(old);
}

export function joinTexts(parts: readonly string[], separator: string, budget: Budget): string {
  budget.make(parts.reduce((length, part) => length + part.length, separator.length * parts.length));
  return parts.join(separator);
}

export function center(text: string, width: number, budget: Budget): string {
  const missing = Math.max(boundedWidth(width, budget) - lengthOf(text), 0);
  const left = Math.floor(missing / 2) + (missing & width & 1); // as CPython's str.center
  return " ".repeat(left) + text + " ".repeat(missing - left);
}

function boundedWidth(width: number, budget: Budget): number {
  budget.make(Math.max(width, 0));
  return width;
}

/** UTF-16 index → index in code points. */
const indexOfText = (text: string, at: number): number => (at < 0 ? -1 : lengthOf(text.slice(0, at)));

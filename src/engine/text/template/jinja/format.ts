/**
 * Python's two ways to format text inside a template: `"%s and %d" % (a, b)`, which is also the `format` filter, and
 * `"{} and {name}".format(a, name=b)`. Supports the common directives, and refuses others by name.
 */
import {
  type Arguments,
  type Budget,
  fail,
  floatText,
  isObject,
  lengthOf,
  numberOf,
  reprOf,
  textOf,
  typeName,
  type Value,
} from "./value.ts";

/** Beyond any use in a prompt. */
const MAX_WIDTH = 1000;

const PERCENT = /%(?:\((\w+)\))?([-+ 0#]*)(\d*)(?:\.(\d+))?(.?)/gs;

/** `format % value`, where a tuple gives several values and a dict named ones. */
export function formatPercent(format: string, value: Value, budget: Budget): string {
  budget.make(format.length);
  const values = isObject(value) && value.kind === "tuple" ? value.items : [value];
  let used = 0;
  let length = format.length;
  const text = format.replace(PERCENT, (all, name?: string, flags = "", width = "", digits?: string, verb = "") => {
    if (verb === "%") return "%";
    let item: Value | undefined = values[used];
    if (name !== undefined) {
      used = values.length;
      item = isObject(value) && value.kind === "dict" ? value.entries.get(name) : undefined;
    } else used++;
    if (item === undefined) throw fail("not enough arguments for format string");
    const directive = { fill: flags.includes("0") ? "0" : " ", left: flags.includes("-"), width, digits, verb, all };
    const piece = finish(percentText(item, directive, budget), directive, budget);
    budget.check((length += piece.length));
    return piece;
  });
  const namesOnly = isObject(value) && value.kind === "dict";
  if (used < values.length && !namesOnly) throw fail("not all arguments converted during string formatting");
  return text;
}

interface Directive {
  readonly fill: string;
  readonly left: boolean;
  readonly width: string;
  readonly digits: string | undefined;
  readonly verb: string;
  readonly all: string;
}

function percentText(value: Value, { verb, digits, all }: Directive, budget: Budget): string {
  if (verb === "s") return textOf(value, budget).slice(0, digits === undefined ? undefined : Number(digits));
  if (verb === "r") return reprOf(value, budget);
  const number = numberOf(value);
  if (!"dixXf".includes(verb) || verb === "") throw fail(`unsupported format ${JSON.stringify(all)}`);
  if (number === undefined) throw fail(`%${verb} format: a real number is required, not ${typeName(value)}`);
  if (verb === "f") return number.toFixed(Math.min(Number(digits ?? 6), 100));
  const whole = Math.trunc(number);
  return verb === "x" ? whole.toString(16) : verb === "X" ? whole.toString(16).toUpperCase() : String(whole);
}

function finish(
  text: string,
  { fill, left, width }: { fill: string; left: boolean; width: string },
  budget: Budget,
): string {
  const columns = Number(width);
  if (columns > MAX_WIDTH) throw fail(`format width ${columns} is over ${MAX_WIDTH}`);
  budget.make(columns + text.length);
  if (left) return text.padEnd(columns);
  return fill === "0" && text.startsWith("-")
    ? `-${text.slice(1).padStart(columns - 1, "0")}`
    : text.padStart(columns, fill);
}

const BRACES = /\{\{|\}\}|\{(\w*)(?:!([rs]))?(?::([^{}]*))?\}|[{}]/g;
const SPEC = /^(?:(.)?([<>^]))?(0?)(\d*)(,?)(?:\.(\d+))?([sdf]?)$/s;

/** `format.format(…)`. */
export function formatBraces(format: string, args: Arguments, budget: Budget): string {
  let next = 0;
  let length = format.length;
  return format.replace(BRACES, (all: string, field?: string, conversion?: string, spec = "") => {
    if (all === "{{" || all === "}}") return all[0]!;
    if (field === undefined) throw fail(`single '${all}' in format string`);
    const index = field === "" ? next++ : Number(field);
    const value = Number.isNaN(index) ? args.named.get(field) : args.positional[index];
    if (value === undefined) throw fail(`format: no argument ${JSON.stringify(field || String(index))}`);
    const piece = formatSpec(conversion === "r" ? reprOf(value, budget) : value, spec, budget);
    budget.check((length += piece.length));
    return piece;
  });
}

function formatSpec(value: Value, spec: string, budget: Budget): string {
  const parts = SPEC.exec(spec);
  if (!parts) throw fail(`unsupported format spec ${JSON.stringify(spec)}`);
  const [, fill, align, zero, width = "", comma, digits, type] = parts;
  const number = typeof value === "string" ? undefined : numberOf(value);
  let text = textOf(value, budget);
  if (number !== undefined && (type === "f" || digits !== undefined)) {
    text = number.toFixed(Math.min(Number(digits ?? 6), 100));
  } else if (number !== undefined && type === "" && isObject(value)) text = floatText(number);
  else if (typeof value === "string" && digits !== undefined) text = text.slice(0, Number(digits));
  if (comma) text = text.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ",");
  const side = align ?? (number === undefined ? "<" : ">");
  if (side !== "^") return finish(text, { fill: fill ?? (zero || " "), left: side === "<", width }, budget);
  const missing = Math.max(Math.min(Number(width), MAX_WIDTH) - lengthOf(text), 0);
  return (fill ?? " ").repeat(Math.floor(missing / 2)) + text + (fill ?? " ").repeat(Math.ceil(missing / 2));
}

/**
 * Global functions of every chat template: `raise_exception`, `strftime_now`, `range`, `namespace`, `dict`, `joiner`,
 * and the constants. Behaviour: transformers' chat_template_utils.py and jinja2's defaults.
 */
import { AppError } from "../../../../base/index.ts";
import { intArgument, textArgument } from "./methods.ts";
import {
  type Arguments,
  type Budget,
  dict,
  fail,
  isDict,
  itemsOf,
  type Key,
  list,
  textOf,
  type Value,
} from "./value.ts";

export function makeGlobals(now: Date, budget: Budget): Map<string, Value> {
  const call = (name: string, run: (args: Arguments) => Value): [string, Value] => [
    name,
    { kind: "function", name, call: run },
  ];
  const constants: [string, Value][] = [
    ["true", true],
    ["True", true],
    ["false", false],
    ["False", false],
    ["none", null],
    ["None", null],
  ];
  return new Map([
    ...constants,
    call("raise_exception", ({ positional: [message = ""] }) => {
      throw new AppError("bad_request", textOf(message, budget));
    }),
    call("strftime_now", (args) => {
      const format = textArgument(args, 0, "format");
      budget.spend(format.length);
      return strftime(now, format);
    }),
    call("range", (args) => list(range(args, budget))),
    call("namespace", (args) => ({ kind: "namespace", fields: new Map(entries(args, budget) as [string, Value][]) })),
    call("dict", (args) => dict(entries(args, budget))),
    call("joiner", (args) => makeJoiner(args)),
  ]);
}

/** Entries of a dict or of pairs, followed by the named ones. */
function entries({ positional: [source], named }: Arguments, budget: Budget): [Key, Value][] {
  const given: [Key, Value][] = source !== undefined && isDict(source) ? [...source.entries] : [];
  if (source !== undefined && isDict(source)) budget.spend(source.entries.size);
  else if (source !== undefined) {
    for (const pair of itemsOf(source, budget)) {
      const [key, value, ...more] = itemsOf(pair, budget);
      if (typeof key !== "string" || value === undefined || more.length > 0)
        throw fail("expected pairs of key and value");
      given.push([key, value]);
    }
  }
  return [...given, ...named];
}

function range(args: Arguments, budget: Budget): number[] {
  const [a, b, c] = [0, 1, 2].map((i) => intArgument(args, i, ""));
  const [start, stop, step] = b === undefined ? [0, a ?? 0, 1] : [a ?? 0, b, c ?? 1];
  if (step === 0) throw fail("range() arg 3 must not be zero");
  const length = Math.max(0, Math.ceil((stop - start) / step));
  budget.spend(length);
  return Array.from({ length }, (_, i) => start + i * step);
}

/** Returns an empty text on its first call, and its separator from then on. */
function makeJoiner({ positional: [separator = ", "] }: Arguments): Value {
  let isFirst = true;
  const call = (): Value => {
    const value = isFirst ? "" : separator;
    isFirst = false;
    return value;
  };
  return { kind: "function", name: "joiner", call };
}

const MONTHS = "January February March April May June July August September October November December".split(" ");
const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");

/** Python's strftime in the C locale and local time. Unknown directives stay unchanged. */
function strftime(date: Date, format: string): string {
  const pad = (n: number, width = 2): string => String(n).padStart(width, "0");
  const month = MONTHS[date.getMonth()]!;
  const day = DAYS[date.getDay()]!;
  const hour12 = date.getHours() % 12 || 12;
  const year = date.getFullYear();
  const dayOfYear = Math.round((Date.UTC(year, date.getMonth(), date.getDate()) - Date.UTC(year, 0, 0)) / 86_400_000);
  const parts: Readonly<Record<string, string>> = {
    "%": "%",
    A: day,
    a: day.slice(0, 3),
    B: month,
    b: month.slice(0, 3),
    h: month.slice(0, 3),
    Y: String(year),
    y: pad(year % 100),
    m: pad(date.getMonth() + 1),
    d: pad(date.getDate()),
    e: String(date.getDate()).padStart(2),
    j: pad(dayOfYear, 3),
    H: pad(date.getHours()),
    I: pad(hour12),
    M: pad(date.getMinutes()),
    S: pad(date.getSeconds()),
    p: date.getHours() < 12 ? "AM" : "PM",
    w: String(date.getDay()),
    u: String(date.getDay() || 7),
  };
  const whole = { F: "%Y-%m-%d", T: "%H:%M:%S", D: "%m/%d/%y", R: "%H:%M" } as const;
  return format
    .replace(/%([FTDR])/g, (_, name: keyof typeof whole) => whole[name])
    .replace(/%(-?)([A-Za-z%])/g, (all, dash: string, name: string) => {
      const text = parts[name];
      if (text === undefined) return all;
      return dash ? text.replace(/^[0 ](?=\d)/, "") : text;
    });
}

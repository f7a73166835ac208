/**
 * Durations and timestamps on the wire: Go duration texts (`1h30m`, `300ms`), `keep_alive` values, and RFC 3339 times
 * with nine fractional digits. The grammar is that of Go's time.ParseDuration.
 */
import { unexpected } from "./untrusted.ts";

const NS_PER_UNIT: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3, // U+00B5, micro sign
  μs: 1e3, // U+03BC, Greek mu
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  h: 3600e9,
};

/** Go keeps durations in an int64 of nanoseconds: about 292 years. */
const NS_MAX = 2 ** 63;
const MS_PER_S = 1e3;
const NS_PER_MS = 1e6;

/** Nanoseconds (negative too) of a Go duration text; undefined if it is not one. */
export function parseDuration(text: string): number | undefined {
  const sign = text.startsWith("-") ? -1 : 1;
  let rest = text.replace(/^[-+]/, "");
  if (rest === "0") return 0;
  if (rest === "") return undefined;
  let totalNs = 0;
  while (rest !== "") {
    const number = /^(\d+\.?\d*|\.\d+)/.exec(rest)?.[0];
    if (number === undefined) return undefined;
    const unit = /^[^.\d]*/.exec(rest.slice(number.length))?.[0] ?? "";
    const nsPerUnit = Object.hasOwn(NS_PER_UNIT, unit) ? NS_PER_UNIT[unit] : undefined;
    if (nsPerUnit === undefined) return undefined;
    totalNs += Number(number) * nsPerUnit;
    if (totalNs >= NS_MAX) return undefined;
    rest = rest.slice(number.length + unit.length);
  }
  return sign * Math.trunc(totalNs) || 0;
}

/** The text Go prints for a duration: `5m0s`, `1.5s`, `250ms`, `0s`. */
export function formatDuration(ns: number): string {
  if (ns < 0) return `-${formatDuration(-ns)}`;
  if (ns === 0) return "0s";
  if (ns < 1e3) return `${ns}ns`;
  if (ns < 1e6) return `${ns / 1e3}µs`;
  if (ns < 1e9) return `${ns / 1e6}ms`;
  const minutes = Math.floor(ns / 60e9);
  const seconds = `${Number((ns / 1e9 - minutes * 60).toFixed(9))}s`;
  if (minutes === 0) return seconds;
  return minutes < 60 ? `${minutes}m${seconds}` : `${Math.floor(minutes / 60)}h${minutes % 60}m${seconds}`;
}

/**
 * Milliseconds that a model stays loaded, from a request's `keep_alive`: a number of seconds or a Go duration text;
 * negative: Infinity; absent or null: undefined, the server's default. Throws `bad_request`.
 */
export function parseKeepAlive(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number") return value < 0 ? Infinity : value * MS_PER_S;
  const ns = typeof value === "string" ? parseDuration(value) : undefined;
  if (ns === undefined) throw unexpected("keep_alive", 'a number of seconds or a duration such as "5m"', value);
  return ns < 0 ? Infinity : ns / NS_PER_MS;
}

/**
 * RFC 3339 in UTC with nine fractional digits.
 * @param epochMs fractions allowed; exact to the microsecond, the precision of a double for today's dates
 */
export function formatTime(epochMs: number): string {
  const wholeMs = Math.floor(epochMs);
  const micros = Math.min(999, Math.floor((epochMs - wholeMs) * 1e3));
  return `${new Date(wholeMs).toISOString().slice(0, -1)}${String(micros).padStart(3, "0")}000Z`;
}

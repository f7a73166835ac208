/** Displayed numbers, sizes and times, in the language of the page. */
import type { Words } from "../words/index.ts";

/** The page's language; tests have no document. */
const locale = (): string => globalThis.document?.documentElement.lang || "en";

const in_ = (value: number, unit: string, digits = 0): string =>
  new Intl.NumberFormat(locale(), {
    style: "unit",
    unit,
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  }).format(value);

const BYTES = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"] as const;

/** `1.2 GB`, in powers of ten. */
export function bytesText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  for (; value >= 999.5 && unit < BYTES.length - 1; unit++) value /= 1000;
  return unit === 0 ? `${Math.round(value)} B` : in_(value, BYTES[unit]!, value < 9.95 ? 1 : 0);
}

/** `1,234`. */
export const countText = (count: number): string => count.toLocaleString(locale());

/** `12.3`, in tokens per second. */
export const rateText = (rate: number): string =>
  rate.toLocaleString(locale(), { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** `4 min`. */
export function durationText(ms: number): string {
  if (ms < 950) return in_(ms, "millisecond");
  const [value, unit] = largest(ms);
  return in_(value, unit, unit === "second" && value < 9.95 ? 1 : 0);
}

/** A duration in the largest unit that is at least one. */
function largest(ms: number): [number, "second" | "minute" | "hour" | "day"] {
  const seconds = ms / 1000;
  if (seconds < 60) return [seconds, "second"];
  if (seconds < 3600) return [seconds / 60, "minute"];
  return seconds < 48 * 3600 ? [seconds / 3600, "hour"] : [seconds / 86_400, "day"];
}

/** `4 minutes ago`, or `in 4 minutes`. */
function relative(ms: number): string {
  const [value, unit] = largest(Math.abs(ms));
  const format = new Intl.RelativeTimeFormat(locale(), { numeric: "auto" });
  return format.format(Math.sign(ms) * Math.round(value), unit);
}

/** `4 minutes ago`, or the date if that is long ago. */
export function agoText(atMs: number, nowMs: number = Date.now()): string {
  const ms = Math.max(0, nowMs - atMs);
  if (ms < 45_000) return relative(0);
  return ms < 7 * 86_400_000 ? relative(-ms) : new Date(atMs).toLocaleDateString(locale(), { dateStyle: "medium" });
}

/** `4:05:06 PM`. */
export const timeText = (atMs: number): string => new Date(atMs).toLocaleTimeString(locale());

/** `Nov 27, 2026, 4:05:06 PM`. */
export const dateTimeText = (atMs: number): string =>
  new Date(atMs).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "medium" });

/** `in 4 minutes`. Undefined: too far away to matter. */
export function untilText(atMs: number, nowMs: number = Date.now()): string | undefined {
  const ms = atMs - nowMs;
  return ms > 10 * 365 * 86_400_000 ? undefined : relative(Math.max(0, ms));
}

/** The heading under which a chat is listed. */
export function dayText(days: Words["chats"]["days"], atMs: number, nowMs: number = Date.now()): string {
  const day = (ms: number): number => new Date(ms).setHours(0, 0, 0, 0);
  const ago = Math.round((day(nowMs) - day(atMs)) / 86_400_000);
  if (ago <= 0) return days.today;
  if (ago === 1) return days.yesterday;
  if (ago < 7) return days.week;
  if (ago < 30) return days.month;
  return new Date(atMs).toLocaleDateString(locale(), { month: "long", year: "numeric" });
}

/** A call's arguments as JSON, with characters that a reader cannot see, or that reorder a line, as escapes. */
export const argumentsText = (args: unknown): string =>
  (JSON.stringify(args, null, 2) ?? "").replace(
    /[\p{Cf}\u2028\u2029]/gu,
    (char) => `\\u{${char.codePointAt(0)!.toString(16)}}`,
  );

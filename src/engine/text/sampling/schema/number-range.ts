/**
 * Numbers in a range as a grammar that compares digits from the left. Integers have up to 15 digits; bounded numbers
 * have no exponent and up to `BOUNDED_FRACTION_DIGITS` decimals, so values that differ from a bound only in later
 * decimals are excluded.
 */

/** Inclusive unless `open`. */
export interface Bound {
  readonly value: number;
  readonly open: boolean;
}

const FRACTION_DIGITS = 15;
/** Fewer for bounded numbers: every digit is a state, and each bounded number has its own. */
const BOUNDED_FRACTION_DIGITS = 6;

const EXPONENT = "([eE] [+\\u002d]? [0-9]{1,2})?";

/** Any integer that a double holds exactly. */
export const INTEGER = '("0" | "-"? [1-9] [0-9]{0,14})';
/** Any number; the exponent is limited to prevent overflow. */
export const NUMBER = `"-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,${FRACTION_DIGITS}})? ${EXPONENT}`;

const MAX_INTEGER = 999_999_999_999_999; // 15 digits, as in INTEGER

/** Integers in a range; undefined if it is empty. */
export function integerGrammar(range: { min?: Bound | undefined; max?: Bound | undefined }): string | undefined {
  const low = range.min ? Math.ceil(range.min.value) : -MAX_INTEGER;
  const high = range.max ? Math.floor(range.max.value) : MAX_INTEGER;
  const min = Math.max(-MAX_INTEGER, range.min?.open && low === range.min.value ? low + 1 : low);
  const max = Math.min(MAX_INTEGER, range.max?.open && high === range.max.value ? high - 1 : high);
  if (min > max) return undefined;
  if (min === -MAX_INTEGER && max === MAX_INTEGER) return INTEGER;
  const parts: string[] = [];
  if (min < 0) parts.push(`"-" ${naturals(Math.max(1, -max), -min)}`);
  if (max >= 0) parts.push(naturals(Math.max(0, min), max));
  return choice(parts);
}

/** Numbers in a range; undefined if it is empty. */
export function numberGrammar(range: { min?: Bound | undefined; max?: Bound | undefined }): string | undefined {
  const min = range.min && range.min.value > -MAX_INTEGER ? range.min : undefined;
  const max = range.max && range.max.value < MAX_INTEGER ? range.max : undefined;
  if (range.min && range.min.value > MAX_INTEGER) return undefined;
  if (range.max && range.max.value < -MAX_INTEGER) return undefined;
  if (!min && !max) return NUMBER;
  const low = min ?? { value: -MAX_INTEGER, open: false };
  const high = max ?? { value: MAX_INTEGER, open: false };
  if (low.value > high.value || (low.value === high.value && (low.open || high.open))) return undefined;
  const parts: string[] = [];
  if (low.value < 0) {
    const nearest = high.value < 0 ? { value: -high.value, open: high.open } : { value: 0, open: true };
    const negative = decimals(nearest, { value: -low.value, open: low.open });
    if (negative) parts.push(`"-" ${negative}`);
  }
  if (high.value >= 0 && !(high.value === 0 && high.open)) {
    const positive = decimals(low.value >= 0 ? low : { value: 0, open: false }, high);
    if (positive) parts.push(positive);
  }
  return parts.length > 0 ? choice(parts) : undefined;
}

/** Integers from..to without leading zeros, 0 ≤ from ≤ to. */
function naturals(from: number, to: number): string {
  const parts: string[] = [];
  const free: number[] = []; // lengths at which every number is in the range
  for (let length = String(from).length; length <= String(to).length; length++) {
    const [least, most] = [length === 1 ? 0 : 10 ** (length - 1), 10 ** length - 1];
    if (length > 1 && from <= least && to >= most) free.push(length - 1);
    else parts.push(sameLength(String(Math.max(from, least)), String(Math.min(to, most))));
  }
  if (free.length > 0) parts.push(`[1-9] [0-9]{${free[0]},${free.at(-1)}}`);
  return choice(parts);
}

/** Digit strings of equal length between two bounds. */
function sameLength(low: string, high: string): string {
  if (low === "") return '""';
  const rest = low.length - 1;
  const [a, b] = [Number(low[0]), Number(high[0])];
  if (/^0*$/.test(low.slice(1)) && /^9*$/.test(high.slice(1))) return `${digits(a, b)}${anyDigits(rest)}`;
  if (a === b) return `${digits(a, b)} ${sameLength(low.slice(1), high.slice(1))}`;
  const parts = [`${digits(a, a)} ${sameLength(low.slice(1), "9".repeat(rest))}`];
  if (b - a > 1) parts.push(`${digits(a + 1, b - 1)}${anyDigits(rest)}`);
  parts.push(`${digits(b, b)} ${sameLength("0".repeat(rest), high.slice(1))}`);
  return choice(parts);
}

/** Non-negative decimals between two bounds, 0 ≤ low ≤ high. */
function decimals(low: Bound, high: Bound): string | undefined {
  const [lowWhole, lowFraction] = split(low.value);
  const [highWhole, highFraction] = split(high.value);
  const above = { digits: lowFraction, open: low.open };
  const below = { digits: highFraction, open: high.open };
  if (lowWhole === highWhole) return withFraction(naturals(lowWhole, lowWhole), { low: above, high: below });
  const parts = [withFraction(naturals(lowWhole, lowWhole), { low: above })];
  if (highWhole - lowWhole > 1) parts.push(withFraction(naturals(lowWhole + 1, highWhole - 1), {}));
  parts.push(withFraction(naturals(highWhole, highWhole), { high: below }));
  const possible = parts.filter((part) => part !== undefined);
  return possible.length > 0 ? choice(possible) : undefined;
}

/** Digits after the point of a bound, without trailing zeros. */
interface FractionBound {
  readonly digits: string;
  readonly open: boolean;
}
interface FractionRange {
  readonly low?: FractionBound;
  readonly high?: FractionBound;
}

/** An integral part followed by a fraction in a range; the fraction is optional if zero is in it. */
function withFraction(whole: string, range: FractionRange): string | undefined {
  const zero = admitsZero(range);
  const fraction = fractionDigits(range, BOUNDED_FRACTION_DIGITS);
  if (fraction === undefined) return zero ? whole : undefined;
  return zero ? `${whole} ("." ${fraction})?` : `${whole} "." ${fraction}`;
}

const admitsZero = ({ low, high }: FractionRange): boolean =>
  !(low && (low.digits !== "" || low.open)) && !(high && high.digits === "" && high.open);

/** One or more digits whose value as a fraction is in the range; undefined if impossible. */
function fractionDigits({ low, high }: FractionRange, room: number): string | undefined {
  if (room === 0) return undefined;
  if (low?.digits === "" && !low.open) return fractionDigits(high ? { high } : {}, room);
  if (high?.digits === "") return high.open ? undefined : `"0"{1,${room}}`;
  if (!low && !high) return `[0-9]{1,${room}}`;
  const from = low ? firstDigit(low) : 0;
  const to = high ? firstDigit(high) : 9;
  if (from > to) return undefined;
  const parts: (string | undefined)[] = [];
  if (low && high && from === to) {
    parts.push(afterDigit(from, { low: afterFirst(low), high: afterFirst(high) }, room));
  } else {
    const [freeFrom, freeTo] = [low ? from + 1 : from, high ? to - 1 : to];
    if (low) parts.push(afterDigit(from, { low: afterFirst(low) }, room));
    if (freeFrom <= freeTo) parts.push(`${digits(freeFrom, freeTo)} [0-9]{0,${room - 1}}`);
    if (high) parts.push(afterDigit(to, { high: afterFirst(high) }, room));
  }
  const possible = parts.filter((part) => part !== undefined);
  return possible.length > 0 ? choice(possible) : undefined;
}

/** A digit that equals the bound's first digit, followed by all texts that the rest of the bound allows. */
function afterDigit(digit: number, rest: FractionRange, room: number): string | undefined {
  const more = fractionDigits(rest, room - 1);
  const alone = admitsZero(rest);
  if (more === undefined) return alone ? digits(digit, digit) : undefined;
  return `${digits(digit, digit)} ${alone ? `(${more})?` : more}`;
}

const firstDigit = (bound: FractionBound): number => Number(bound.digits[0] ?? 0);
const afterFirst = (bound: FractionBound): FractionBound => ({ digits: bound.digits.slice(1), open: bound.open });

/** Integral part and fraction digits of a non-negative double, from its shortest decimal form. */
function split(value: number): [whole: number, fraction: string] {
  const whole = Math.trunc(value);
  const text = value.toFixed(FRACTION_DIGITS);
  const shortest = String(value);
  const fraction = (shortest.includes("e") ? text : shortest).split(".")[1] ?? "";
  return [whole, fraction.slice(0, FRACTION_DIGITS).replace(/0+$/, "")];
}

const digits = (from: number, to: number): string => (from === to ? `"${from}"` : `[${from}-${to}]`);
const anyDigits = (count: number): string => (count === 0 ? "" : count === 1 ? " [0-9]" : ` [0-9]{${count}}`);
const choice = (parts: readonly string[]): string => (parts.length === 1 ? parts[0]! : `(${parts.join(" | ")})`);

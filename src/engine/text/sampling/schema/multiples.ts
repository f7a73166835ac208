/**
 * `multipleOf` as a grammar: a list of multiples within narrow bounds, the last digits for integral steps, the decimals
 * for steps that divide one. Other steps are left to the client.
 */
import { INTEGER, integerGrammar, type Bound } from "./number-range.ts";

const LISTED_MAX = 256; // multiples written out
const STEPS_MAX = 100; // decimal steps per unit
const SUFFIX_DIGITS = 3; // digits of an integral step that divides a power of ten

interface Range {
  readonly min?: Bound | undefined;
  readonly max?: Bound | undefined;
}

/** Multiples of a step in a range; undefined if not expressible, empty text if there is no multiple. */
export function multiplesGrammar(step: number, range: Range, type: "integer" | "number"): string | undefined {
  const { min, max } = range;
  const perUnit = Math.round(1 / step);
  if (step < 1 && Math.abs(1 / step - perUnit) < 1e-9) {
    if (type === "integer") return integerGrammar(range) ?? "";
    return listed(step, range) ?? (perUnit <= STEPS_MAX ? fractions(step, range) : undefined);
  }
  if (!Number.isInteger(step)) return listed(step, range, type === "integer" ? Number.isInteger : undefined);
  if (step === 1) return integerGrammar(range) ?? "";
  const isOpen = max === undefined && (min === undefined || (min.value === 0 && !min.open));
  return listed(step, range) ?? (isOpen ? suffixes(step, min !== undefined) : undefined);
}

const decimalsOf = (step: number): number => {
  const [digits = "", exponent = "0"] = String(step).split("e");
  return Math.max(0, (digits.split(".")[1]?.length ?? 0) - Number(exponent));
};

/** All multiples in a bounded range, if they are few. */
function listed(step: number, { min, max }: Range, keep?: (value: number) => boolean): string | undefined {
  if (!min || !max) return undefined;
  const from = Math.ceil(min.value / step - 1e-9);
  const to = Math.floor(max.value / step + 1e-9);
  // In a larger range, adding one changes nothing
  const isExact = Number.isSafeInteger(from) && Number.isSafeInteger(to);
  if (!isExact || to - from > LISTED_MAX) return undefined;
  const decimals = Math.min(decimalsOf(step), 20);
  const values: string[] = [];
  for (let i = from; i <= to; i++) {
    const value = Number((i * step).toFixed(decimals));
    const isOut = (min.open && value === min.value) || (max.open && value === max.value);
    if (!isOut && keep?.(value) !== false) values.push(plain(value, decimals));
  }
  return values.map((value) => `"${value}"`).join(" | ");
}

/** Without exponent, and without the sign of a negative zero. */
const plain = (value: number, decimals: number): string =>
  value === 0
    ? "0"
    : value
        .toFixed(decimals)
        .replace(/(\.\d*?)0+$/, "$1")
        .replace(/\.$/, "");

/** Integral multiples by their last digits, if the step divides a power of ten. */
function suffixes(step: number, isNatural: boolean): string | undefined {
  const digits = [1, 2, SUFFIX_DIGITS].find((count) => 10 ** count % step === 0);
  if (digits === undefined) return undefined;
  const ends: string[] = [];
  const short: string[] = [];
  for (let value = 0; value < 10 ** digits; value += step) {
    ends.push(`"${String(value).padStart(digits, "0")}"`);
    if (value > 0) short.push(`"${value}"`);
  }
  const long = `[1-9] [0-9]{0,${14 - digits}} (${ends.join(" | ")})`;
  return `("0" | ${isNatural ? "" : '"-"? '}(${[...short, long].join(" | ")}))`;
}

/** Numbers whose decimals are multiples of a step that divides one, in a range with integral ends. */
function fractions(step: number, { min, max }: Range): string | undefined {
  if ([min, max].some((bound) => bound && !(Number.isInteger(bound.value) && bound.value >= 0))) return undefined;
  const decimals = decimalsOf(step);
  const found = new Set<string>();
  for (let i = 1; i < Math.round(1 / step); i++) {
    const text = (i * step).toFixed(decimals).slice(2);
    for (let length = text.replace(/0+$/, "").length; length <= decimals; length++) found.add(text.slice(0, length));
  }
  const part = `"." (${[...found].map((text) => `"${text}"`).join(" | ")})`;
  const zero = Array.from({ length: decimals }, (_, i) => `"${"0".repeat(i + 1)}"`).join(" | ");
  const any = `(${part} | "." (${zero}))?`;
  if (!min && !max) return `"-"? ${INTEGER.replace(' "-"?', "")} ${any}`;
  if (!min) return undefined;
  const first = min.open ? min.value + 1 : min.value;
  const whole = integerGrammar({
    min: { value: first, open: false },
    max: max && { value: max.value - 1, open: false },
  });
  const parts = [
    ...(min.open && (!max || max.value > min.value) ? [`"${min.value}" ${part}`] : []),
    ...(whole === undefined ? [] : [`(${whole}) ${any}`]),
    ...(max && !max.open && max.value >= first ? [`"${max.value}"`] : []),
  ];
  return parts.join(" | ");
}

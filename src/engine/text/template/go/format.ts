/**
 * Prints values like Go's fmt package: `%v` notation for print and actions, and printf with flags, width and precision.
 * Ported from fmt/print.go and fmt/format.go for the types that templates can hold.
 */
import { utf8Bytes } from "../../utf8.ts";
import { AppError } from "../../../../base/index.ts";
import { type CostOf, escapeCost, printCost, wholeCost } from "./cost.ts";
import { type GoList, type GoMap, type GoStruct, type GoValue, typeName } from "./value.ts";

type Composite = GoList | GoMap | GoStruct;

const isComposite = (value: GoValue): value is Composite => typeof value === "object" && value !== null;

/** The output of an action for a value. */
export const actionText = (value: GoValue): string =>
  value === undefined || value === null ? "<no value>" : valueText(value);

/** `%v`. */
export function valueText(value: GoValue): string {
  if (value === null || value === undefined) return "<nil>";
  if (typeof value === "number") return floatText(value, "g", -1);
  if (!isComposite(value)) return String(value);
  return value.text ? value.text() : compositeText(value, valueText);
}

/** `[a b]`, `map[k:v]`, `{a b}` with every part printed by `part`. */
function compositeText(value: Composite, part: (value: GoValue) => string): string {
  if (value.kind === "list") return `[${value.items.map(part).join(" ")}]`;
  if (value.kind === "struct") return `{${[...value.fields.values()].map(part).join(" ")}}`;
  return `map[${[...value.entries].map(([key, each]) => `${part(key)}:${part(each)}`).join(" ")}]`;
}

/** Sprint: a space between two operands if neither is a string. */
export function sprint(values: readonly GoValue[]): string {
  let text = "";
  values.forEach((value, i) => {
    if (i > 0 && typeof value !== "string" && typeof values[i - 1] !== "string") text += " ";
    text += valueText(value);
  });
  return text;
}

interface Spec {
  readonly verb: string;
  readonly flags: string;
  readonly width: number;
  readonly precision: number; // −1: absent
  /** Columns left for padding, shared by all directives of a call. */
  readonly room: { left: number };
}

/** `[3]`: the value to use next; mistakes in it are printed into the text. */
const INDEX = String.raw`(\[(?:[^\]%]*\])?)?`;
const DIRECTIVE = new RegExp(
  String.raw`%([-+# 0]*)${INDEX}(\*|\d*)(?:(\.)${INDEX}(\*|\d*))?(?:(?<!\])${INDEX})?([\s\S]?)`,
  "gu",
);
const MAX_WIDTH = 1_000_000; // tooLarge, fmt/print.go
/** Maximum padding of one call; Go has no such limit. */
const MAX_PADDING = 16 * 1024 * 1024;
/** Maximum characters of one call, which may print one text many times. */
const MAX_PRINTED = 32 * 1024 * 1024;

/** Flags, index, width; point, index, precision; index, verb. */
type Directive = [string, string?, string?, string?, string?, string?, string?, string?];

/**
 * Sprintf. Mistakes are printed into the text, as in Go: `%!d(string=x)`, `%!d(MISSING)`, `%!(EXTRA int=1)`. Each
 * directive is charged, because many may print one value.
 */
export function sprintf(
  format: string,
  values: readonly GoValue[],
  charge: (cost: CostOf, value: GoValue) => void,
): string {
  let used = 0;
  let isReordered = false;
  let printed = 0;
  const room = { left: MAX_PADDING };
  const print = (_: string, ...parts: Directive): string => {
    const [flags, first, columns = "", dot, second, digits = "", third, verb = ""] = parts;
    charge(wholeCost, verb);
    let isGood = true;
    /** Moves to the value of an index; returns whether the index is valid. */
    const moveTo = (index: string | undefined): boolean => {
      if (index === undefined) return false;
      isReordered = true;
      const number = /^\[(\d+)\]$/.exec(index)?.[1];
      if (number && Number(number) >= 1 && Number(number) <= values.length) used = Number(number) - 1;
      else isGood = false;
      return number !== undefined;
    };
    /** A width or precision, literal or (`*`) the next value; undefined: invalid. */
    const measure = (written: string): number | undefined => {
      const value = written === "*" ? values[used++] : BigInt(Math.min(Number(written), MAX_WIDTH + 1));
      return typeof value === "bigint" && Math.abs(Number(value)) <= MAX_WIDTH ? Number(value) : undefined;
    };
    if (moveTo(first) && columns !== "*" && (columns !== "" || dot)) isGood = false;
    const width = measure(columns);
    moveTo(second);
    const precision = dot ? measure(digits) : -1;
    moveTo(third);
    const mistake = (width === undefined ? "%!(BADWIDTH)" : "") + (precision === undefined ? "%!(BADPREC)" : "");
    if (verb === "%") return `${mistake}%`;
    if (verb === "") return `${mistake}%!(NOVERB)`;
    if (!isGood) return `${mistake}%!${verb}(BADINDEX)`;
    if (used >= values.length) return `${mistake}%!${verb}(MISSING)`;
    const plain = verb === "v" ? flags.replaceAll("+", "") : flags; // %+v differs for structs only
    const side = (width ?? 0) < 0 ? `-${plain}` : plain;
    const spec = { verb, flags: side, width: Math.abs(width ?? 0), precision: Math.max(precision ?? -1, -1), room };
    charge(verb === "s" || (verb === "v" && !flags.includes("#")) ? printCost : escapeCost, values[used]);
    const text = mistake + formatOne(values[used++], spec);
    printed += text.length;
    if (printed <= MAX_PRINTED) return text;
    throw new AppError("too_large", `printf: expected at most ${MAX_PRINTED} characters`);
  };
  let text = format.replace(DIRECTIVE, print);
  const extra = isReordered ? [] : values.slice(used);
  for (const value of extra) charge(printCost, value);
  if (extra.length > 0) text += `%!(EXTRA ${extra.map(typedText).join(", ")})`;
  return text;
}

const typedText = (value: GoValue): string =>
  value === null || value === undefined ? "<nil>" : `${typeName(value)}=${valueText(value)}`;

function formatOne(value: GoValue, spec: Spec): string {
  spec.room.left -= spec.width + Math.max(spec.precision, 0);
  if (spec.room.left < 0) throw new AppError("too_large", `printf: expected at most ${MAX_PADDING} columns of padding`);
  if (spec.verb === "T") return pad(value === null || value === undefined ? "<nil>" : typeName(value), spec);
  if (value === null || value === undefined) {
    return spec.verb === "v" ? pad("<nil>", spec) : `%!${spec.verb}(<nil>)`;
  }
  if (isComposite(value)) {
    if (value.text && "vsqxX".includes(spec.verb)) return formatText(value.text(), spec) ?? badVerb(value, spec);
    return compositeText(value, (part) => formatOne(part, spec));
  }
  return FORMATS[typeof value as keyof typeof FORMATS](value as never, spec) ?? badVerb(value, spec);
}

const badVerb = (value: GoValue, spec: Spec): string =>
  `%!${spec.verb}(${typeName(value)}=${formatOne(value, { ...spec, verb: "v" })})`;

/** One formatter per basic type; undefined: the verb does not fit. */
const FORMATS = {
  string: formatText,
  bigint: formatInt,
  number: formatFloat,
  boolean: (value: boolean, spec: Spec): string | undefined =>
    spec.verb === "v" || spec.verb === "t" ? pad(String(value), spec) : undefined,
};

function formatText(value: string, spec: Spec): string | undefined {
  const cut = spec.precision < 0 ? value : firstCharacters(value, spec.precision);
  switch (spec.verb) {
    case "v":
      return pad(spec.flags.includes("#") ? quote(cut) : cut, spec);
    case "s":
      return pad(cut, spec);
    case "q":
      return pad(spec.flags.includes("#") && !cut.includes("`") ? `\`${cut}\`` : quote(cut), spec);
    case "x":
    case "X": {
      const hex = utf8Bytes(cut).toHex();
      return pad(spec.verb === "x" ? hex : hex.toUpperCase(), spec);
    }
    default:
      return undefined;
  }
}

function firstCharacters(text: string, count: number): string {
  const near = text.slice(0, 2 * count); // a character has one or two units
  return [...near].slice(0, count).join("");
}

const RADIX: Readonly<Record<string, number>> = { v: 10, d: 10, b: 2, o: 8, O: 8, x: 16, X: 16 };
const PREFIX: Readonly<Record<string, string>> = { b: "0b", o: "0", x: "0x", X: "0X" };

function formatInt(value: bigint, spec: Spec): string | undefined {
  const radix = RADIX[spec.verb];
  if (radix !== undefined) {
    const magnitude = (value < 0n ? -value : value).toString(radix).padStart(Math.max(spec.precision, 0), "0");
    const prefix = spec.verb === "O" ? "0o" : spec.flags.includes("#") ? (PREFIX[spec.verb] ?? "") : "";
    const digits = spec.verb === "X" ? magnitude.toUpperCase() : magnitude;
    return padNumber({ sign: value < 0n ? "-" : "", digits: prefix + digits }, spec);
  }
  const code = Number(value);
  const character = code >= 0 && code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
  if (spec.verb === "c") return pad(character, spec);
  if (spec.verb === "q") return pad(`'${character === "'" ? "\\'" : quote(character).slice(1, -1)}'`, spec);
  if (spec.verb === "U") return pad(`U+${value.toString(16).toUpperCase().padStart(4, "0")}`, spec);
  return undefined;
}

function formatFloat(value: number, spec: Spec): string | undefined {
  const form = spec.verb === "v" ? "g" : spec.verb;
  if (!"eEfFgG".includes(form)) return undefined;
  const digits = spec.precision >= 0 ? spec.precision : form === "g" || form === "G" ? -1 : 6;
  const text = floatText(Math.abs(value), form.toLowerCase() as "e" | "f" | "g", digits);
  const negative = value < 0 || Object.is(value, -0);
  return padNumber(
    { sign: negative ? "-" : "", digits: form === "E" || form === "G" ? text.toUpperCase() : text },
    spec,
  );
}

/**
 * strconv.FormatFloat with 64 bits; precision −1: the fewest digits that give the same number when read.
 * `g` takes an exponent below 1e−4 and from 10^precision on; the shortest form from 1e6 on.
 */
function floatText(value: number, form: "e" | "f" | "g", precision: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "+Inf" : "-Inf";
  if (Object.is(value, -0)) return `-${floatText(0, form, precision)}`;
  if (form === "f") return value.toFixed(Math.min(precision, 100));
  if (form === "e") return exponent(value.toExponential(Math.min(precision, 100)));
  const short = precision < 0 ? value.toExponential() : value.toExponential(Math.min(Math.max(precision, 1), 100) - 1);
  const power = value === 0 ? 0 : Number(short.slice(short.indexOf("e") + 1));
  const limit = precision < 0 ? 6 : Math.max(precision, 1); // 6: formatDigits, strconv/ftoa.go
  if (power < -4 || power >= limit) return exponent(precision < 0 ? short : dropZeros(short));
  if (precision < 0) return plain(short, power);
  return dropZeros(value.toFixed(Math.min(Math.max(limit - 1 - power, 0), 100)));
}

/** Two digits at least in the exponent: `1e+06`. */
const exponent = (text: string): string => text.replace(/e([+-])(\d)$/, "e$10$2");

/** Removes trailing zeros of a fraction, and its point if nothing is left. */
const dropZeros = (text: string): string =>
  text.replace(/\.(\d*?)0+(?=e|$)/, (_, kept: string) => (kept ? `.${kept}` : ""));

/** Digits of `d.ddde±n` without an exponent. */
function plain(short: string, power: number): string {
  const sign = short.startsWith("-") ? "-" : "";
  const digits = short.slice(sign.length, short.indexOf("e")).replace(".", "");
  if (power < 0) return `${sign}0.${"0".repeat(-power - 1)}${digits}`;
  const whole = digits.slice(0, power + 1).padEnd(power + 1, "0");
  return sign + whole + (digits.length > power + 1 ? `.${digits.slice(power + 1)}` : "");
}

function padNumber(number: { sign: string; digits: string }, spec: Spec): string {
  const sign = number.sign || (spec.flags.includes("+") ? "+" : spec.flags.includes(" ") ? " " : "");
  const zeros =
    spec.flags.includes("0") && !spec.flags.includes("-") && !(spec.precision >= 0 && "dxXobOv".includes(spec.verb));
  if (zeros) return sign + number.digits.padStart(spec.width - sign.length, "0");
  return pad(sign + number.digits, { ...spec, flags: spec.flags.replace("0", "") });
}

/** Width counts code points. */
function pad(text: string, spec: Spec): string {
  if (spec.width === 0) return text;
  if (text.length >= 2 * spec.width) return text; // a character has one or two units
  const missing = spec.width - [...text].length;
  if (missing <= 0) return text;
  if (spec.flags.includes("-")) return text + " ".repeat(missing);
  return (spec.flags.includes("0") ? "0" : " ").repeat(missing) + text;
}

const QUOTED: Readonly<Record<string, string>> = {
  "\u0007": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};

/** strconv.Quote: escapes unprintable characters, but not the placeholders of ../outside.ts. */
function quote(text: string): string {
  const body = text.replace(/["\\]|(?![ \ufdd0-\ufdef])[\p{C}\p{Z}]/gu, (c) => {
    const code = c.codePointAt(0)!;
    if (QUOTED[c] !== undefined) return QUOTED[c];
    const hex = code.toString(16);
    return code < 0x80
      ? `\\x${hex.padStart(2, "0")}`
      : code < 0x10000
        ? `\\u${hex.padStart(4, "0")}`
        : `\\U${hex.padStart(8, "0")}`;
  });
  return `"${body}"`;
}

/** Returns whether Go prints a code point unescaped; placeholders as in `quote`. */
export const isPrintable = (character: string): boolean => !/(?![ \ufdd0-\ufdef])[\p{C}\p{Z}]/u.test(character);

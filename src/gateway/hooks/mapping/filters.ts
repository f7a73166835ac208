/**
 * Filters of templates: `{{ title | default: "untitled" | truncate: 80 }}`. A filter never throws: it returns
 * unsuitable values unchanged.
 */
import { createHash } from "node:crypto";
import { AppError } from "../../../base/index.ts";

export type Literal = string | number | boolean | null;

/** A value in a chain of filters, with its origin. */
export interface Piece {
  readonly value: unknown;
  readonly from: "operator" | "external";
}

type Apply = (piece: Piece, args: readonly Literal[]) => Piece;

interface Filter {
  /** Minimum and maximum number of arguments. */
  readonly args: readonly [least: number, most: number];
  readonly apply: Apply;
}

const TRUNCATE_DEFAULT = 200;
const JSON_INDENT_MAX = 8;
/** Smaller epoch numbers are seconds, larger ones milliseconds: the year 5138, or 1973. */
const SECONDS_MAX = 1e11;

/** A filter from text to text; numbers count as text, lists and objects stay as they are. */
const text =
  (change: (text: string, args: readonly Literal[]) => string): Apply =>
  (piece, args) => {
    const { value } = piece;
    if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return piece;
    return { ...piece, value: change(String(value), args) };
  };

const FILTERS = {
  /** Replaces an absent or empty value by the operator's text. */
  default: {
    args: [1, 1],
    apply: (piece, [instead = ""]) =>
      isMissing(piece.value) || piece.value === "" ? { value: instead, from: "operator" } : piece,
  },
  json: {
    args: [0, 1],
    apply: (piece, [indent = 0]) =>
      isMissing(piece.value) ? piece : { ...piece, value: jsonOf(piece.value, Number(indent)) },
  },
  /** Length in graphemes; marks the cut. */
  truncate: { args: [0, 1], apply: text((value, [length = TRUNCATE_DEFAULT]) => truncate(value, Number(length))) },
  upper: { args: [0, 0], apply: text((value) => value.toUpperCase()) },
  lower: { args: [0, 0], apply: text((value) => value.toLowerCase()) },
  trim: { args: [0, 0], apply: text((value) => value.trim()) },
  /** Decodes base64 in either alphabet, as Google's Pub/Sub sends it. */
  base64: { args: [0, 0], apply: text(decodeBase64) },
  date: { args: [0, 1], apply: (piece, [format = "iso"]) => ({ ...piece, value: date(piece.value, String(format)) }) },
  escape: { args: [0, 1], apply: text((value, [how = "html"]) => (ESCAPES[String(how)] ?? ESCAPES["html"]!)(value)) },
  join: {
    args: [0, 1],
    apply: (piece, [between = ", "]) =>
      Array.isArray(piece.value) ? { ...piece, value: piece.value.map(textOf).join(String(between)) } : piece,
  },
  /** A short digest of a value: a key for items without an id. */
  hash: {
    args: [0, 0],
    apply: (piece) => (isMissing(piece.value) ? piece : { ...piece, value: shortHash(textOf(piece.value)) }),
  },
} as const satisfies Record<string, Filter>;

const ESCAPES: Readonly<Record<string, (text: string) => string>> = {
  html: (value) => value.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`),
  url: (value) => encodeURIComponent(value.toWellFormed()),
  markdown: (value) => value.replace(/[\\`*_{}[\]()#+\-.!|<>~]/g, "\\$&"),
  json: (value) => JSON.stringify(value).slice(1, -1),
};

export const isMissing = (value: unknown): boolean => value === undefined || value === null;

/** The text of a value in a template. Throws `too_large` for a value that nests too deep to print. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (isMissing(value)) return "";
  return typeof value === "object" ? jsonOf(value, 0) : String(value);
}

/** A filter with its arguments. Throws `bad_request` naming the filter. */
export function makeFilter(name: string, args: readonly Literal[]): (piece: Piece) => Piece {
  const filter: Filter | undefined = Object.hasOwn(FILTERS, name) ? FILTERS[name as keyof typeof FILTERS] : undefined;
  if (!filter) {
    throw new AppError("bad_request", `no filter '${name}'; there are: ${Object.keys(FILTERS).join(", ")}`);
  }
  const [least, most] = filter.args;
  if (args.length < least || args.length > most) {
    throw new AppError("bad_request", `filter '${name}': expected ${least} to ${most} arguments, got ${args.length}`);
  }
  return (piece) => filter.apply(piece, args);
}

export const shortHash = (value: string): string => createHash("sha256").update(value).digest("hex").slice(0, 32);

function jsonOf(value: unknown, indent: number): string {
  try {
    return JSON.stringify(value, null, Math.min(indent, JSON_INDENT_MAX)) ?? "";
  } catch (error) {
    throw new AppError("too_large", "a value nests too deep", { cause: error });
  }
}

function truncate(value: string, length: number): string {
  if (!(length >= 0) || value.length <= length) return value;
  const segments = new Intl.Segmenter().segment(value.slice(0, length * 8));
  let kept = "";
  let count = 0;
  for (const { segment } of segments) {
    if (count === length) return `${kept}…`;
    kept += segment;
    count += 1;
  }
  return kept.length < value.length ? `${kept}…` : value;
}

function decodeBase64(value: string): string {
  const digits = value.replace(/\s/g, "");
  if (!/^[\w+/-]*={0,2}$/.test(digits)) return value;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(digits, "base64"));
  } catch {
    return value; // the bytes are not text
  }
}

/** In UTC: `iso`, `date`, `time`, `datetime` or `unix`. */
function date(value: unknown, format: string): unknown {
  const number = typeof value === "number" || (typeof value === "string" && /^\d+(\.\d+)?$/.test(value));
  const epoch = number ? Number(value) * (Number(value) < SECONDS_MAX ? 1000 : 1) : value;
  const at = new Date(typeof epoch === "string" || typeof epoch === "number" ? epoch : Number.NaN);
  if (Number.isNaN(at.getTime())) return value;
  const iso = at.toISOString();
  if (format === "date") return iso.slice(0, -14);
  if (format === "time") return iso.slice(-13, -8);
  if (format === "datetime") return `${iso.slice(0, -14)} ${iso.slice(-13, -8)} UTC`;
  return format === "unix" ? Math.floor(at.getTime() / 1000) : iso;
}

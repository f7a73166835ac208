/**
 * Values of Go templates, and Go's reflection on them: kind, truth, type name, JSON. A Go `int` is a bigint, a
 * `float64` a number, a nil interface null, and a missing value (reflect.Value{}) undefined.
 */
import { AppError } from "../../../../base/index.ts";

export type GoValue = undefined | null | boolean | bigint | number | string | GoList | GoMap | GoStruct;

/** The output of a value with a String method; absent: Go's own notation. */
interface Printed {
  readonly text?: () => string;
}

export interface GoList extends Printed {
  readonly kind: "list";
  readonly items: readonly GoValue[];
  /** Go's name of its type, for messages; absent: `[]interface {}`. */
  readonly type?: string;
}

/** As `goMap` makes it. */
export interface GoMap extends Printed {
  readonly kind: "map";
  /** In key order, as Go iterates over a map and prints it. */
  readonly entries: ReadonlyMap<string, GoValue>;
  /** The value for a missing key; absent: nil. */
  readonly missing?: GoValue;
  readonly type?: string;
}

/** Unknown fields are errors. */
export interface GoStruct extends Printed {
  readonly kind: "struct";
  readonly type: string;
  readonly fields: ReadonlyMap<string, GoValue>;
  /** Fields of its JSON, in order; undefined ones are omitted. */
  readonly json: ReadonlyMap<string, GoValue>;
}

/** Maximum depth of JSON values read or printed. */
const MAX_DEPTH = 200;

/** A JSON value as `encoding/json` decodes it into an `any`: numbers are floats. */
export function goFrom(json: unknown, depth = 0): GoValue {
  checkDepth(depth);
  if (json === null || json === undefined) return null;
  if (typeof json === "boolean" || typeof json === "number" || typeof json === "string") return json;
  if (Array.isArray(json)) return { kind: "list", items: json.map((item) => goFrom(item, depth + 1)) };
  return goMap(Object.entries(json).map(([key, value]) => [key, goFrom(value, depth + 1)]));
}

export function checkDepth(depth: number): void {
  if (depth > MAX_DEPTH) throw new AppError("too_large", `template: value nested deeper than ${MAX_DEPTH}`);
}

export const goMap = (entries: readonly (readonly [string, GoValue])[]): GoMap => ({
  kind: "map",
  entries: new Map(entries.toSorted(([a], [b]) => compareText(a, b))),
});

/** Truth in `if`, `with`, `and`, `or`, `not`: not the zero value of its type. */
export function isTrue(value: GoValue): boolean {
  if (typeof value !== "object" || value === null) return Boolean(value);
  if (value.kind === "list") return value.items.length > 0;
  return value.kind === "struct" || value.entries.size > 0;
}

export function typeName(value: GoValue): string {
  if (value === null || value === undefined) return "nil";
  if (typeof value === "bigint") return "int";
  if (typeof value === "number") return "float64";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "string") return "string";
  if (value.kind === "list") return value.type ?? "[]interface {}";
  return value.type ?? "map[string]interface {}";
}

/** Order of strings by their UTF-8 bytes, which is the order of their code points. */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    // Surrogates stand for code points above all others.
    return (isSurrogate(x) ? x + 0x10000 : x) - (isSurrogate(y) ? y + 0x10000 : y);
  }
  return a.length - b.length;
}

const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit < 0xe000;

/** As `json.Marshal`: compact, with `<`, `>`, `&` and line separators escaped. */
export function toJson(value: GoValue): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : JSON.stringify(value);
  if (typeof value === "boolean") return String(value);
  if (typeof value === "string") return jsonString(value);
  if (value.kind === "list") return `[${value.items.map(toJson).join(",")}]`;
  const members = [...(value.kind === "struct" ? value.json : value.entries)].filter(([, each]) => each !== undefined);
  return `{${members.map(([key, each]) => `${jsonString(key)}:${toJson(each)}`).join(",")}}`;
}

const jsonString = (text: string): string => escapeHtml(JSON.stringify(text));

/** Escapes that encoding/json adds to make JSON safe in HTML. These characters occur only inside strings. */
const ESCAPED: Readonly<Record<string, string>> = {
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
};
const escapeHtml = (json: string): string => json.replace(/[<>&\u2028\u2029]/g, (c) => ESCAPED[c]!);

/**
 * The data layout shared by TypeScript and C: the header of a pass, and one record per op. Defined once, in
 * `fields.ts`; `layoutHeader` generates the C form, which `layout.h` holds (a test compares them). Addresses have 64
 * bits everywhere.
 */
import {
  ACTS,
  FEATURES,
  HEAD,
  KV_TYPES,
  MATRIX,
  PASS,
  RECORDS,
  RESULT,
  ROWS,
  SCORES,
  SIZES,
  type Fields,
  type Scalar,
} from "./fields.ts";

export { ACTS, FEATURES, KV_TYPES, RESULT, ROWS, SCORES };

export type OpKind = keyof typeof RECORDS;
/** Kinds are numbered in order, from 1. */
export const KINDS = Object.keys(RECORDS) as OpKind[];

const fieldSize = (type: Fields[string]): number =>
  type === "matrix" ? sizeOf(MATRIX) : typeof type === "string" ? SIZES[type] : type[1] * sizeOf(MATRIX);

const alignOf = (type: Fields[string]): number => (typeof type === "string" && type !== "matrix" ? SIZES[type] : 8);

/** The offset of each field, aligned as by a C compiler. */
function offsetsOf(fields: Fields): { offsets: Record<string, number>; size: number } {
  const offsets: Record<string, number> = {};
  let at = 0;
  for (const [name, type] of Object.entries(fields)) {
    at = Math.ceil(at / alignOf(type)) * alignOf(type);
    offsets[name] = at;
    at += fieldSize(type);
  }
  return { offsets, size: Math.ceil(at / 8) * 8 };
}

function sizeOf(fields: Fields): number {
  return offsetsOf(fields).size;
}

/** Offsets of all tables, computed once, because headers are written for each pass. */
const OFFSETS: ReadonlyMap<Fields, Readonly<Record<string, number>>> = new Map(
  [MATRIX, HEAD, PASS, ...Object.values(RECORDS)].map((fields: Fields) => [fields, offsetsOf(fields).offsets]),
);
const MATRIX_BYTES = sizeOf(MATRIX);
const HEAD_BYTES = sizeOf(HEAD);
/** Size of every record: a multiple of a cache line. */
export const RECORD_BYTES =
  Math.ceil((HEAD_BYTES + Math.max(...Object.values(RECORDS).map((fields) => sizeOf(fields)))) / 64) * 64;
export const PASS_BYTES = Math.ceil(sizeOf(PASS) / 64) * 64;

type Values<F extends Fields> = {
  readonly [K in keyof F]?: F[K] extends Scalar
    ? number
    : F[K] extends "matrix"
      ? MatrixValues
      : readonly MatrixValues[];
};
export type MatrixValues = { readonly [K in keyof typeof MATRIX]?: number };
export type RecordValues<K extends OpKind> = Values<(typeof RECORDS)[K]>;
export type HeadValues = Pick<Values<typeof HEAD>, "rowSet" | "perRow" | "joined">;
export type PassValues = Values<typeof PASS>;

type AnyValues = Readonly<Record<string, number | MatrixValues | readonly MatrixValues[] | undefined>>;

function put(view: DataView, fields: Fields, base: number, values: AnyValues): void {
  const offsets = OFFSETS.get(fields)!; // one entry per table
  for (const [name, value] of Object.entries(values)) {
    const type = fields[name];
    const at = base + offsets[name]!;
    if (type === undefined || value === undefined) continue;
    if (typeof value !== "number") {
      const list = (Array.isArray(value) ? value : [value]) as readonly MatrixValues[]; // one or several of them
      for (const [i, each] of list.entries()) put(view, MATRIX, at + i * MATRIX_BYTES, each);
    } else if (type === "f32") view.setFloat32(at, value, true);
    else if (type === "i32") view.setInt32(at, value, true);
    else if (type === "u32") view.setUint32(at, value, true);
    else view.setBigUint64(at, BigInt(value), true);
  }
}

/** Writes record `index` of a list of records. */
export function putRecord<K extends OpKind>(
  view: DataView,
  index: number,
  record: { kind: K; head: HeadValues; values: RecordValues<K> },
): void {
  const at = index * RECORD_BYTES;
  put(view, HEAD, at, { perRow: 1, ...record.head, kind: KINDS.indexOf(record.kind) + 1 });
  put(view, RECORDS[record.kind], at + HEAD_BYTES, record.values);
}

/** Writes some fields of the header. */
export const putPass = (view: DataView, values: PassValues): void => put(view, PASS, 0, values);

/** The C form of the layout. */
export function layoutHeader(): string {
  const body = (fields: Fields): string =>
    Object.entries(fields)
      .map(([name, type]) => {
        if (type === "matrix") return `Matrix ${name};`;
        return typeof type === "string" ? `${type} ${name};` : `Matrix ${name}[${type[1]}];`;
      })
      .join(" ");
  const title = (name: string): string => name[0]!.toUpperCase() + name.slice(1);
  const upper = (name: string): string => name.replace(/([A-Z])/g, "_$1").toUpperCase();
  const check = (name: string, fields: Fields, head = 0): string =>
    `_Static_assert(sizeof(${name}) == ${head + sizeOf(fields)}, "${name}");`;
  const numbers = (prefix: string, table: Readonly<Record<string, number>>): string =>
    `enum { ${Object.entries(table)
      .map(([name, value]) => `${prefix}_${upper(name)} = ${value}`)
      .join(", ")} };`;
  return [
    "// layout: structures shared by TypeScript and C. Made from layout.ts by build.sh; do not edit.",
    "#pragma once",
    '#include "vec.h"',
    "",
    numbers("ROWS", ROWS),
    numbers("ACT", ACTS),
    numbers("SCORE", SCORES),
    numbers("KV", KV_TYPES),
    numbers("FEATURE", FEATURES),
    `enum { ${KINDS.map((kind, i) => `OP_${upper(kind)} = ${i + 1}`).join(", ")} };`,
    `#define RESULT ${RESULT}`,
    `#define RECORD_BYTES ${RECORD_BYTES}`,
    "",
    `typedef struct { ${body(MATRIX)} } Matrix;`,
    check("Matrix", MATRIX),
    `typedef struct { ${body(HEAD)} } Head;`,
    check("Head", HEAD),
    `typedef struct { ${body(PASS)} } Pass;`,
    check("Pass", PASS),
    ...Object.entries(RECORDS).flatMap(([name, fields]) => [
      `typedef struct { Head head; ${body(fields)} } ${title(name)};`,
      check(title(name), fields, HEAD_BYTES),
    ]),
    "",
  ].join("\n");
}

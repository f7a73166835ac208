/**
 * What TypeScript and C tell each other: the header of a pass, and one record per op. Written once, here;
 * `layoutHeader` gives the C of it, which `layout.h` keeps (a test compares them). Addresses are 64 bits
 * wide everywhere.
 */

const SIZES = { i32: 4, u32: 4, f32: 4, i64: 8, u64: 8 } as const;
type Scalar = keyof typeof SIZES;
/** Fields in order, each with its type; `matrix` is a nested one. */
type Fields = Readonly<Record<string, Scalar | "matrix" | readonly ["matrix", number]>>;

/** Which rows an op works on. */
export const ROWS = {
  /** All of the pass. */
  all: 0,
  /** Those that `take` has picked. */
  wanted: 1,
} as const;

/** Block types by ggml's numbers. */
export const ACTS = {
  silu: 0,
  gelu: 1,
  gelu_erf: 2,
  relu: 3,
  relu_sqr: 4,
  sigmoid: 5,
  tanh: 6,
  swiglu_oai: 7,
} as const;
/** How experts are scored: `Routing` of step.ts. */
export const SCORES = { softmax: 0, sigmoid: 1, softmax_chosen: 2 } as const;
/** How the KV cache keeps its values. */
export const KV_TYPES = { f32: 0, f16: 1 } as const;
/** In place of an address: where the result of the pass goes, which the header says. */
export const RESULT = 1;

const MATRIX = {
  data: "u64", // address of the first row, of the first matrix of a stack
  scales: "u64", // f32 (experts), a factor on each matrix; 0: none
  bias: "u64", // f32 (rows); 0: none
  out: "u64", // f32 (tokens, outDim)
  rowBytes: "i64",
  expertBytes: "i64",
  rows: "i32",
  type: "i32", // ggml's number
  outDim: "i32",
  pad: "i32",
  grid: "u64", // of a type whose blocks name points of one
} as const satisfies Fields;

/** What every record begins with. */
const HEAD = {
  kind: "i32",
  rowSet: "i32",
  perRow: "i32", // how many rows the op has for each of its row set: experts used, or 1
  joined: "i32", // records behind this one whose rows are done along with it
  next: "u64", // stamp << 32 | chunks claimed
  done: "u64", // stamp << 32 | chunks finished
} as const satisfies Fields;

/** The header of a pass: all that changes between passes. A thread works on its own copy. */
const PASS = {
  stamp: "u32", // number of the pass; 0 while the rest is being written
  threads: "i32",
  ops: "u64", // records of RECORD_BYTES
  opCount: "i32",
  spin: "i32", // looks at a counter before a thread sleeps
  wake: "i32", // counts ops that were finished; sleepers wait for it to change
  sleepers: "i32",
  waitOn: "u64", // address of a function (address, expected); 0: the system call of Linux, or none
  wakeAll: "u64", // address of a function (address)
  scratch: "u64",
  scratchBytes: "i64", // of each thread
  rows: "i32",
  decodeRows: "i32", // the first rows are one token each of a sequence that goes on
  wanted: "i32",
  wantedDecode: "i32",
  blockCount: "i32",
  slot: "i32", // of a context shift, with the three behind it
  keep: "i32",
  discard: "i32",
  length: "i32",
  tokens: "u64", // i32 (rows)
  slots: "u64", // i32 (rows)
  positions: "u64", // i32 (rows)
  places: "u64", // i32 (rows): where the keys of a row go that are not kept
  input: "u64", // f32 (rows, dim)
  wantedRows: "u64", // i32 (wanted)
  blocks: "u64", // i32 (blockCount, 4): first row, rows; the place of their sequence, its length
  result: "u64",
} as const satisfies Fields;

const NORM = {
  x: "u64",
  out: "u64",
  weight: "u64",
  packed: "u64",
  n: "i32",
  runs: "i32",
  weightRows: "i32",
  eps: "f32",
} as const satisfies Fields;

/** One record per op. An address of 0 is a part that is not there. */
const RECORDS = {
  embed: { table: "matrix", out: "u64", dim: "i32", vocab: "i32", scale: "f32" },
  input: { out: "u64", dim: "i32" },
  /** Over each of `runs` runs of a row. Run i has row i of `weightRows` weights, again from the first; 0: none. */
  rmsNorm: { ...NORM, sum: "i32" },
  layerNorm: { ...NORM, bias: "u64" },
  pack: { x: "u64", packed: "u64", n: "i32" },
  /** y = W · x + b for up to three matrices of one input, or of the experts that `group` has counted. */
  linear: {
    x: "u64",
    packed: "u64",
    groups: "u64",
    n: "i32",
    count: "i32",
    accumulate: "i32",
    floats: "i32",
    inputPerRow: "i32", // inputs of each row: 1, or one for each of its experts
    matrices: ["matrix", 3],
  },
  rope: { x: "u64", cos: "u64", sin: "u64", dim: "i32", heads: "i32", headDim: "i32", rotaryDim: "i32", neox: "i32" },
  store: {
    k: "u64",
    v: "u64",
    keys: "u64",
    values: "u64",
    heads: "i32",
    headDim: "i32",
    valueDim: "i32",
    valueStride: "i32", // from one head of v to the next
    ctxLen: "i32",
    kept: "i32",
    type: "i32",
  },
  attend: {
    q: "u64",
    out: "u64",
    keys: "u64",
    values: "u64",
    heads: "i32",
    kvHeads: "i32",
    headDim: "i32",
    ctxLen: "i32",
    kept: "i32", // 1: causal, over the cache of a slot; 0: over all rows of the sequence in this pass
    valueDim: "i32",
    window: "i32",
    chunked: "i32",
    scale: "f32",
    softCap: "f32",
    type: "i32",
    sinks: "u64", // f32 (heads)
    slopes: "u64", // f32 (heads)
  },
  /** The `used` experts with the best scores, and the weights of what they say. */
  route: {
    logits: "u64",
    bias: "u64", // f32 (experts), added to scores where experts are chosen
    chosen: "u64",
    shares: "u64",
    experts: "i32",
    used: "i32",
    score: "i32",
    groups: "i32", // of experts; 0: all in one
    groupsUsed: "i32",
    normalize: "i32",
    scale: "f32",
  },
  /** Each row times each of its shares. */
  weigh: { x: "u64", shares: "u64", out: "u64", n: "i32", used: "i32" },
  /**
   * Sorts the (row, expert) pairs by expert. groups: stamp << 32 | experts that have some, of each of those i32
   * (expert, where its pairs begin, of decode, of prompts), then the pairs. Each layer has its own, as late threads
   * look there.
   */
  group: { chosen: "u64", groups: "u64", experts: "i32", used: "i32" },
  combine: { x: "u64", shares: "u64", out: "u64", dim: "i32", used: "i32" },
  /** out = a ⊙ act(b); each value of b meets n / narrow of a. act −1: none */
  multiply: { a: "u64", b: "u64", out: "u64", n: "i32", narrow: "i32", act: "i32" },
  clamp: { x: "u64", n: "i32", limit: "f32" },
  slice: { x: "u64", out: "u64", heads: "i32", from: "i32", to: "i32", at: "i32" },
  join: { a: "u64", b: "u64", out: "u64", heads: "i32", first: "i32", second: "i32" },
  /** Each head by a matrix of its own. */
  headLinear: { x: "u64", out: "u64", matrix: "matrix", n: "i32", heads: "i32", transposed: "i32" },
  /** State (slots, taps − 1, n). */
  causalConv: { x: "u64", out: "u64", state: "u64", weight: "u64", bias: "u64", n: "i32", taps: "i32", act: "i32" },
  /** State (slots, heads, headDim, headDim). */
  deltaRule: {
    q: "u64",
    k: "u64",
    v: "u64",
    alpha: "u64",
    beta: "u64",
    a: "u64",
    dt: "u64",
    out: "u64",
    state: "u64",
    heads: "i32",
    keyHeads: "i32",
    headDim: "i32",
    alphas: "i32", // of each head: 1, or headDim
    repeat: "i32",
    scale: "f32",
  },
  /** State (slots, heads, headDim, stateDim). */
  selectiveScan: {
    x: "u64",
    dt: "u64",
    dtBias: "u64",
    b: "u64",
    c: "u64",
    a: "u64",
    d: "u64",
    out: "u64",
    state: "u64",
    heads: "i32",
    headDim: "i32",
    stateDim: "i32",
    groups: "i32",
    decays: "i32", // of each head: 1, or stateDim
  },
  gate: { gate: "u64", up: "u64", out: "u64", packed: "u64", n: "i32", act: "i32" },
  add: { a: "u64", b: "u64", out: "u64", n: "i32", scale: "f32" },
  addVector: { x: "u64", vector: "u64", n: "i32" },
  addPosition: { x: "u64", table: "matrix", n: "i32" },
  positionScale: { x: "u64", n: "i32", coef: "f32", floorScale: "f32", offset: "f32" },
  softCap: { x: "u64", n: "i32", cap: "f32" },
  scale: { x: "u64", n: "i32", by: "f32" },
  take: { x: "u64", out: "u64", n: "i32" },
  /** Context shift of one slot: its keys and values move down, the keys turned back. */
  shift: {
    keys: "u64",
    values: "u64",
    cos: "u64",
    sin: "u64",
    heads: "i32",
    headDim: "i32",
    ctxLen: "i32",
    rotaryDim: "i32",
    neox: "i32",
    type: "i32",
    valueDim: "i32",
  },
} as const satisfies Readonly<Record<string, Fields>>;

export type OpKind = keyof typeof RECORDS;
/** Kinds are numbered in order, from 1. */
export const KINDS = Object.keys(RECORDS) as OpKind[];

const fieldSize = (type: Fields[string]): number =>
  type === "matrix" ? sizeOf(MATRIX) : typeof type === "string" ? SIZES[type] : type[1] * sizeOf(MATRIX);

const alignOf = (type: Fields[string]): number => (typeof type === "string" && type !== "matrix" ? SIZES[type] : 8);

/** Where each field lies: aligned as a C compiler does it. */
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

const HEAD_BYTES = sizeOf(HEAD);
/** Of every record: a multiple of a cache line. */
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
  const { offsets } = offsetsOf(fields);
  for (const [name, value] of Object.entries(values)) {
    const type = fields[name];
    const at = base + offsets[name]!;
    if (type === undefined || value === undefined) continue;
    if (typeof value !== "number") {
      const list = (Array.isArray(value) ? value : [value]) as readonly MatrixValues[]; // one or several of them
      for (const [i, each] of list.entries()) put(view, MATRIX, at + i * sizeOf(MATRIX), each);
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

/** The C of all this. */
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
    "// layout: what TypeScript and C tell each other. Made from layout.ts by build.sh; do not edit.",
    "#pragma once",
    '#include "vec.h"',
    "",
    numbers("ROWS", ROWS),
    numbers("ACT", ACTS),
    numbers("SCORE", SCORES),
    numbers("KV", KV_TYPES),
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

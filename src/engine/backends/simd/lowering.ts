/** Common parts of lowerings: the programs' shared memory, products, in-place activations. */
import { ACTS, type MatrixValues } from "../../../../kernels/simd/layout.ts";
import type { WeightSource } from "../../program/backend.ts";
import type { GrowingRopeTable } from "../../program/rope.ts";
import type { Buf, GateLimit, Gating, LowRank, OfferedChange, RopeScaling, Step, Weight } from "../../program/step.ts";
import { unpackRows } from "../../program/unpack.ts";
import type { ChosenRows } from "./chosen-rows.ts";
import { hasFloatProducts } from "./interleaved.ts";
import type { KvLayer, KvShape } from "./kv.ts";
import type { Block, Memory } from "./memory.ts";
import { isFloatType, isNarrow } from "./narrow.ts";
import type { Activation, Buffers, RecordList } from "./records.ts";
import type { Remembered } from "./remembered.ts";
import { makeTable, type StreamedLayer, type StreamedRecord } from "./streaming/streamed-layers.ts";
import type { Streams } from "./streaming/streams.ts";
import type { WeightPlaces } from "./weights.ts";

const MATRICES_MAX = 3;

/** Shared by the programs of a session. */
export interface Shared {
  readonly memory: Memory;
  readonly source: WeightSource;
  readonly weights: WeightPlaces;
  readonly buffers: Buffers;
  readonly kv: KvShape;
  /** Scratch rows for uncached keys and values: positions of all sequences of a pass. */
  readonly scratchRows: number;
  /** Rows of a pass; grows if a span is longer. */
  maxRows: number;
  readonly ctxLen: number;
  /** Values of a row given as a vector. */
  readonly vectorDim: number;
  readonly precise: boolean;
  /** Prompts are multiplied with float weights as 16-bit integers. */
  readonly words: boolean;
  readonly layers: Map<number, KvLayer>;
  /** States of convolutions and recurrences, (slots, values of the state). */
  readonly kept: Map<Step, Block>;
  /** Set if the program has cross attention. */
  readonly remembered?: Remembered | undefined;
  readonly ropes: Map<RopeScaling, GrowingRopeTable>;
  /** Set if the weights do not fit in memory. */
  readonly streams?: Streams | undefined;
  /** Private scratch floats per thread. */
  scratchFloats: number;
}

/** The cached layers, without the one whose keys last for a pass. */
export const keptLayers = ({ layers }: Shared): KvLayer[] =>
  [...layers].filter(([layer]) => layer >= 0).map(([, each]) => each);

export interface Lowering extends Shared {
  readonly list: RecordList;
  /** Experts that are read while a pass runs. */
  readonly streamed: StreamedLayer[];
  /** Undefined: no row of a pass has chosen an adapter. */
  readonly chosen?: ChosenRows | undefined;
}

/** An activation that is updated in place. */
export function changed(list: RecordList, x: Buf): Activation {
  const y = list.get(x);
  list.wrote(y);
  return y;
}

/** `out`, or the input's memory if the step works in place. */
export function inPlace(list: RecordList, out: Buf, from: Activation): Activation {
  return out.name === from.name ? changed(list, out) : list.make(out, from);
}

interface Gate {
  readonly gate: Activation;
  readonly up: Activation | undefined;
  readonly act: Gating;
  readonly limit?: GateLimit | undefined;
}

/** gate = act(gate) ⊙ up, or act(gate) */
export function gate({ gate, up, act, limit }: Gate, { list }: Lowering): void {
  if (limit?.soft && up) {
    softGate(gate, up, limit, list);
    return;
  }
  list.wrote(gate);
  const limits = { gateMax: limit?.gate ?? 0, upMax: limit?.up ?? 0 };
  const values = {
    gate: gate.address,
    up: up?.address ?? 0,
    out: gate.address,
    n: gate.dim,
    act: ACTS[act],
    ...limits,
  };
  list.add("gate", gate, values);
}

/** gate = cap(gate) ⊙ sigmoid(gate) ⊙ cap(up); changes up, too. */
function softGate(gate: Activation, up: Activation, limit: GateLimit, list: RecordList): void {
  const n = gate.dim;
  const [at, beside] = [gate.address, up.address];
  list.wrote(gate);
  list.wrote(up);
  if (limit.up > 0) list.add("softCap", up, { x: beside, n, cap: limit.up });
  list.add("gate", up, { gate: at, up: beside, out: beside, n, act: ACTS.sigmoid, gateMax: 0, upMax: 0 });
  list.add("softCap", gate, { x: at, n, cap: limit.gate });
  list.add("multiply", gate, { a: at, b: beside, out: at, n, narrow: n, act: -1 });
}

interface Product {
  readonly matrix: MatrixValues;
  readonly out: Activation;
}

/** y = W · x + b, plus low-rank changes. */
export function linear(
  x: Buf,
  { out, w, b }: { out: Buf; w: Weight; b?: Weight | undefined },
  lowering: Lowering,
): Activation {
  const { list, weights } = lowering;
  const from = list.get(x);
  const y = list.make(out, from);
  const bias = b ? weights.vector(b) : 0;
  product(from, [{ matrix: { ...weights.factor(w), bias }, out: y }], lowering);
  for (const each of w.lowRank ?? []) {
    const { a, b, between } = halvesOf(each, lowering);
    const inner = list.make(between, from);
    product(from, [{ matrix: a, out: inner }], lowering);
    product(inner, [{ matrix: b, out: y }], lowering, { accumulate: 1 });
  }
  for (const each of w.offered ?? []) addOffered(from, each, y, lowering);
  return y;
}

/** The halves of a change, and the buffer between them. */
function halvesOf({ a, b }: LowRank, { weights }: Lowering): { a: MatrixValues; b: MatrixValues; between: Buf } {
  const between = { name: `lowRank.inner ${a.outDim}`, dim: a.outDim };
  return { a: weights.short(a), b: weights.narrow(b), between };
}

/** y += scale · b · (a · x) for the adapters that rows have chosen. */
function addOffered(x: Activation, change: OfferedChange, y: Activation, lowering: Lowering): void {
  const { list, chosen } = lowering;
  const { members } = change;
  if (!chosen) return;
  const { a, b, between } = halvesOf(change, lowering);
  for (let round = 0; round < Math.min(chosen.rounds, members.length); round++) {
    const { groups, scales } = chosen.tables(members, { rowSet: x.rowSet, round });
    const inner = list.make(between, x);
    product(x, [{ matrix: a, out: inner }], lowering, { groups });
    list.add("weigh", inner, { x: inner.address, shares: scales, out: inner.address, n: inner.dim, used: 1 });
    list.wrote(inner);
    product(inner, [{ matrix: b, out: y }], lowering, { groups, accumulate: 1 });
  }
}

/** The rows of each expert: a table that the kernels write, `group` in fields.ts. */
export interface Groups {
  readonly address: number;
  readonly words: Int32Array;
}

/** The same for the experts of each row. Returns the record if its weights are read while a pass runs. */
export function expertProducts(
  from: Activation,
  wanted: readonly { w: Weight; b?: Weight | undefined; out: Activation }[],
  { address: groups, words }: Groups,
  lowering: Lowering,
): StreamedRecord | undefined {
  const { list, weights, memory, streams } = lowering;
  const stack = streams?.stackOf(wanted.map(({ w }) => w));
  const table = stack && makeTable(memory, words);
  const inSlots = stack?.matrices();
  const biased = wanted.map(({ w, b, out }, i) => {
    const bias = b && !inSlots ? weights.vector(b) : 0;
    return { matrix: { ...weights.factor(w), bias, ...inSlots?.[i] }, out };
  });
  product(from, biased, lowering, { groups });
  const record = stack && { index: list.count() - 1, stack, table: table!.words };
  if (table) list.last("linear")!.slots = table.address; // just added
  for (const { w, out } of wanted) {
    for (const each of w.lowRank ?? []) {
      const { a, b, between } = halvesOf(each, lowering);
      const inner = list.make(between, out);
      product(from, [{ matrix: a, out: inner }], lowering, { groups });
      product(inner, [{ matrix: b, out }], lowering, { groups, accumulate: 1 });
    }
  }
  return record;
}

/** Adds a record for the products, or extends the previous record if that has the same input. */
export function product(
  x: Activation,
  products: readonly Product[],
  lowering: Lowering,
  { accumulate = 0, groups = 0 }: { accumulate?: number; groups?: number } = {},
): void {
  const { list, precise } = lowering;
  const isFloat = ({ type = 0 }: MatrixValues): boolean =>
    precise || isFloatType(type) || hasFloatProducts(type) || isNarrow(type);
  const matrices = products.map(({ matrix, out }) => ({ ...matrix, out: out.address }));
  lowering.scratchFloats = Math.max(lowering.scratchFloats, panelFloats(x.dim));
  const last = list.last("linear");
  const known = last?.values.matrices ?? [];
  const packed = matrices.every(isFloat) ? 0 : list.packed(x);
  const words = lowering.words && matrices.some(({ type = 0 }) => isFloatType(type)) ? list.words(x) : 0;
  if (
    last &&
    list.last("linear") === last &&
    last.values.x === x.address &&
    !accumulate &&
    !groups &&
    !last.values.accumulate &&
    !last.values.groups &&
    known.length + matrices.length <= MATRICES_MAX &&
    last.rowSet === x.rowSet &&
    known.every(({ out }) => out !== x.address)
  ) {
    const all = [...known, ...matrices];
    const inputs = { packed: packed || (last.values.packed ?? 0), words: words || (last.values.words ?? 0) };
    last.values = { ...last.values, ...inputs, count: all.length, matrices: all };
    return;
  }
  const rows = products[0]!.out;
  list.add("linear", rows, {
    x: x.address,
    packed,
    words,
    groups,
    n: x.dim,
    count: matrices.length,
    accumulate,
    floats: precise ? 1 : 0,
    inputPerRow: x.perRow,
    matrices,
  });
  for (const { out } of products) list.wrote(out);
}

/** A panel of `PANEL_ROWS` rows (32 at most), packed or as floats. */
export const panelFloats = (n: number): number => (Math.ceil(n / 256) * 256 + 64) * 32;

/** (inDim, outDim) of a small matrix, in our memory. */
export function transposed(w: Weight, { source, weights }: Lowering): MatrixValues {
  const rows = unpackRows(source, w, { expert: 0, first: 0, out: new Float32Array(w.outDim * w.inDim) });
  const turned = new Float32Array(rows.length);
  for (let r = 0; r < w.outDim; r++)
    for (let i = 0; i < w.inDim; i++) turned[i * w.outDim + r] = rows[r * w.inDim + i]!;
  return { data: weights.constant(turned), rowBytes: 4 * w.outDim, rows: w.inDim, outDim: w.inDim, type: 0 };
}

/**
 * Step[] → records: what each step becomes for the kernels. Memory is asked for here and nowhere later: a pass
 * allocates nothing.
 */
import { ACTS, KV_TYPES, ROWS, type MatrixValues } from "../../../kernels/simd/layout.ts";
import { plainGating } from "../../../kernels/gating.ts";
import { AppError, assert } from "../../base/errors.ts";
import type { WeightSource } from "../backend.ts";
import type { Variant } from "../describe.ts";
import { takeRowsEarly } from "../early-rows.ts";
import { ropeTable, type GrowingRopeTable } from "../rope.ts";
import type { Activation as Act, Buf, Ops, RopeScaling, Step, Weight } from "../step.ts";
import { unpackRows } from "../unpack.ts";
import { allocateLayer, type KvLayer, type KvShape } from "./kv.ts";
import type { Memory } from "./memory.ts";
import { makeRecordList, type Activation, type Buffers, type RecordList } from "./records.ts";
import type { WeightPlaces } from "./weights.ts";

/** As many as `HEAD_MAX` of ops/attend.h. */
const HEAD_DIM_MAX = 1024;
const MATRICES_MAX = 3;

/** What the programs of a session share. */
export interface Shared {
  readonly memory: Memory;
  readonly source: WeightSource;
  readonly weights: WeightPlaces;
  readonly buffers: Buffers;
  readonly kv: KvShape;
  /** Room for keys and values that are not kept: positions of all sequences of a pass. */
  readonly places: number;
  readonly maxRows: number;
  readonly ctxLen: number;
  readonly precise: boolean;
  readonly layers: Map<number, KvLayer & { rope?: RopeScaling | undefined }>;
  readonly ropes: Map<RopeScaling, GrowingRopeTable>;
  /** Floats that a thread needs for itself. */
  scratchFloats: number;
}

interface Lowering extends Shared {
  readonly list: RecordList;
}

/** A program as records. */
export interface Lowered {
  readonly ops: number;
  readonly count: number;
}

/** Lowers the steps, whose last one writes `result` or what it becomes. */
export function lower(steps: readonly Step[], result: Buf, shared: Shared): Lowered {
  const list = makeRecordList(shared.buffers, { maxRows: shared.maxRows, result });
  const lowering: Lowering = { ...shared, list };
  for (const step of takeRowsEarly(steps)) {
    const op = ops[step.op] as ((step: Step, lowering: Lowering) => void) | "unsupported"; // of this very step
    assert(op !== "unsupported", `a step '${step.op}' that was not refused`);
    op(step, lowering);
  }
  shared.scratchFloats = Math.max(shared.scratchFloats, lowering.scratchFloats);
  const { address } = list.get(result);
  assert(address === 1, `the result '${result.name}' is no row that is wanted`);
  return list.finish(shared.memory);
}

/** Variants that are lowered, see describe.ts. */
export const variants: ReadonlySet<Variant> = new Set<Variant>(["sigmoid or tanh"]);

export const ops: Ops<void, Lowering, "unsupported"> = {
  embed({ out, table, scale }, lowering) {
    const { list, weights } = lowering;
    const y = list.make(out, { rowSet: ROWS.all });
    list.add("embed", y, { table: weights.matrix(table), out: y.address, dim: out.dim, vocab: table.outDim, scale });
    for (const { a, b } of table.lowRank ?? []) {
      const inner = list.make({ name: "lowRank.inner", dim: b.inDim }, y);
      const place = weights.matrix(b);
      list.add("embed", y, { table: place, out: inner.address, dim: b.inDim, vocab: b.outDim, scale: 1 });
      const matrix = { ...transposed(a, lowering), scales: weights.constant(Float32Array.of(scale)) };
      product(inner, [{ matrix, out: y }], lowering, { accumulate: 1 });
    }
  },

  input({ out }, { list }) {
    const y = list.make(out, { rowSet: ROWS.all });
    list.add("input", y, { out: y.address, dim: out.dim });
  },

  rmsNorm({ out, x, w, eps }, { list, weights }) {
    const from = list.get(x);
    const y = inPlace(list, out, from);
    const values = {
      x: from.address,
      out: y.address,
      weight: weights.vector(w),
      n: w.inDim,
      runs: x.dim / w.inDim,
      eps,
    };
    list.add("rmsNorm", y, values);
  },

  layerNorm({ out, x, w, b, eps }, { list, weights }) {
    const from = list.get(x);
    const y = inPlace(list, out, from);
    const bias = b ? weights.vector(b) : 0;
    list.add("layerNorm", y, {
      x: from.address,
      out: y.address,
      weight: weights.vector(w),
      bias,
      n: x.dim,
      runs: 1,
      eps,
    });
  },

  linear: ({ out, x, w, b }, lowering) => void linear(x, { out, w, b }, lowering),

  rope({ x, heads, headDim, rope }, lowering) {
    const { list, memory, ropes, ctxLen } = lowering;
    const table = ropes.get(rope) ?? ropeTable(rope, ctxLen);
    ropes.set(rope, table);
    const y = list.get(x);
    list.wrote(y);
    list.add("rope", y, {
      x: y.address,
      cos: memory.place(table.cos),
      sin: memory.place(table.sin),
      dim: x.dim,
      heads,
      headDim,
      rotaryDim: rope.rotaryDim,
      neox: rope.style === "neox" ? 1 : 0,
    });
  },

  attention(step, lowering) {
    const { layer } = step;
    const { kv, layers } = lowering;
    checkHeads(step, `attention of layer ${layer}`);
    const known = layers.get(layer);
    assert(known, `no KV cache for layer ${layer}`);
    attend({ ...step, ...known, ctxLen: kv.ctxLen, kept: 1 }, lowering);
  },

  bidirectionalAttention(step, lowering) {
    const { memory, kv, places, layers } = lowering;
    const { nHeads: kvHeads, headDim } = step;
    checkHeads(step, "attention");
    const shape = { kvHeads, headDim };
    const known = layers.get(-1) ?? allocateLayer(memory, { ...kv, slots: 1, ctxLen: places }, shape);
    layers.set(-1, known);
    assert(known.kvHeads === kvHeads && known.headDim === headDim, "encoders have heads of one shape");
    attend({ ...step, ...known, window: 0, softCap: 0, ctxLen: places, kept: 0 }, lowering);
  },

  mlp({ out, x, up, upB, down, downB, act }, lowering) {
    const inner = linear(x, { out: { name: "mlp.inner", dim: up.outDim }, w: up, b: upB }, lowering);
    gate({ gate: inner, up: undefined, act }, lowering);
    linear({ name: inner.name, dim: inner.dim }, { out, w: down, b: downB }, lowering);
  },

  gatedMlp(given, lowering) {
    const { out, x, act, ...w } = plainGating(given);
    const bufs = ["gatedMlp.gate", "gatedMlp.up"].map((name) => ({ name, dim: w.gate.outDim }));
    const gated = linear(x, { out: bufs[0]!, w: w.gate, b: w.gateB }, lowering);
    const up = linear(x, { out: bufs[1]!, w: w.up, b: w.upB }, lowering);
    gate({ gate: gated, up, act }, lowering);
    linear(bufs[0]!, { out, w: w.down, b: w.downB }, lowering);
  },

  moe(given, lowering) {
    const step = plainGating(given);
    const { list, buffers, maxRows } = lowering;
    const { router, nUsed: used, act } = step;
    const experts = router.outDim;
    lowering.scratchFloats = Math.max(lowering.scratchFloats, 4 * experts);
    const logits = linear(step.x, { out: { name: "moe.router", dim: experts }, w: router }, lowering);
    const chosen = buffers.of("moe.chosen", maxRows * used * 4);
    const shares = buffers.of("moe.shares", maxRows * used * 4);
    const groups = lowering.memory.allocate((2 + 4 * experts + maxRows * used) * 4, "experts' rows").address;
    const { normalize, scale } = step;
    list.add("route", logits, {
      logits: logits.address,
      chosen,
      shares,
      experts,
      used,
      normalize: normalize ? 1 : 0,
      scale,
    });
    list.add("group", logits, { chosen, groups, experts, used });
    const rows = { rowSet: logits.rowSet, perRow: used };
    const bufs = ["moe.gate", "moe.up", "moe.down"].map((name) => ({ name, dim: step.gate.outDim }));
    const out = (i: number, w: Weight): Activation => list.make({ name: bufs[i]!.name, dim: w.outDim }, rows);
    const inner = [
      { w: step.gate, out: out(0, step.gate) },
      { w: step.up, out: out(1, step.up) },
    ];
    expertProducts(list.get(step.x), inner, groups, lowering);
    gate({ gate: inner[0]!.out, up: inner[1]!.out, act }, lowering);
    const down = out(2, step.down);
    expertProducts(inner[0]!.out, [{ w: step.down, out: down }], groups, lowering);
    const y = list.make(step.out, logits);
    list.add("combine", y, { x: down.address, shares, out: y.address, dim: step.out.dim, used });
  },

  add({ out, a, b, scale }, { list }) {
    const [left, right] = [list.get(a), list.get(b)];
    const y = out.name === b.name ? inPlace(list, out, right) : inPlace(list, out, left);
    list.add("add", y, { a: left.address, b: right.address, out: y.address, n: out.dim, scale });
  },

  positionScale({ x, coef, floorScale, offset }, { list }) {
    const y = changed(list, x);
    list.add("positionScale", y, { x: y.address, n: x.dim, coef, floorScale, offset });
  },

  addPosition({ x, table }, lowering) {
    const y = changed(lowering.list, x);
    lowering.scratchFloats = Math.max(lowering.scratchFloats, x.dim);
    lowering.list.add("addPosition", y, { x: y.address, table: lowering.weights.matrix(table), n: x.dim });
  },

  addVector({ x, w }, { list, weights }) {
    const y = changed(list, x);
    list.add("addVector", y, { x: y.address, vector: weights.vector(w), n: x.dim });
  },

  takeRows({ out, x }, { list }) {
    const from = list.get(x);
    const y = list.make(out, { rowSet: ROWS.wanted });
    list.add("take", y, { x: from.address, out: y.address, n: x.dim });
  },

  bareRmsNorm: "unsupported",
  l2Norm: "unsupported",
  bareLayerNorm: "unsupported",
  headLinear: "unsupported",
  sharedAttention: "unsupported",
  latentAttention: "unsupported",
  causalConv: "unsupported",
  deltaRule: "unsupported",
  selectiveScan: "unsupported",
  multiply: "unsupported",
  activate: "unsupported",
  clamp: "unsupported",
  slice: "unsupported",
  join: "unsupported",

  softCap({ x, cap }, { list }) {
    const y = changed(list, x);
    list.add("softCap", y, { x: y.address, n: x.dim, cap });
  },

  scale({ x, by }, { list }) {
    const y = changed(list, x);
    list.add("scale", y, { x: y.address, n: x.dim, by });
  },
};

/** An activation that is changed where it lies. */
function changed(list: RecordList, x: Buf): Activation {
  const y = list.get(x);
  list.wrote(y);
  return y;
}

/** `out`, which may be what it is made from. */
function inPlace(list: RecordList, out: Buf, from: Activation): Activation {
  return out.name === from.name ? changed(list, out) : list.make(out, from);
}

function checkHeads({ headDim, nHeads }: { headDim: number; nHeads: number }, what: string): void {
  if (headDim <= HEAD_DIM_MAX && nHeads > 0) return;
  throw new AppError("unsupported", `${what}: expected heads of at most ${HEAD_DIM_MAX}, got ${headDim}`);
}

interface Attend extends Pick<
  Step & { op: "attention" },
  "out" | "q" | "k" | "v" | "nHeads" | "scale" | "window" | "softCap"
> {
  readonly keys: KvLayer["keys"];
  readonly values: KvLayer["values"];
  readonly kvHeads: number;
  readonly headDim: number;
  readonly ctxLen: number;
  readonly kept: 0 | 1;
}

function attend(step: Attend, { list, kv }: Lowering): void {
  const { kvHeads, headDim, ctxLen, kept, nHeads: heads, scale, window, softCap } = step;
  const [q, k, v] = [list.get(step.q), list.get(step.k), list.get(step.v)];
  const [keys, values, type] = [step.keys.address, step.values.address, KV_TYPES[kv.type]];
  list.add("store", k, { k: k.address, v: v.address, keys, values, heads: kvHeads, headDim, ctxLen, kept, type });
  const y = list.make(step.out, q);
  const rest = { heads, kvHeads, headDim, ctxLen, kept, window, scale, softCap, type };
  list.add("attend", y, { q: q.address, out: y.address, keys, values, ...rest });
}

/** gate = act(gate) ⊙ up, or act(gate) */
function gate({ gate, up, act }: { gate: Activation; up: Activation | undefined; act: Act }, { list }: Lowering): void {
  list.wrote(gate);
  const values = { gate: gate.address, up: up?.address ?? 0, out: gate.address, n: gate.dim, act: ACTS[act] };
  list.add("gate", gate, values);
}

interface Product {
  readonly matrix: MatrixValues;
  readonly out: Activation;
}

/** y = W · x + b, and what changes of low rank add to it. */
function linear(
  x: Buf,
  { out, w, b }: { out: Buf; w: Weight; b?: Weight | undefined },
  lowering: Lowering,
): Activation {
  const { list, weights } = lowering;
  const from = list.get(x);
  const y = list.make(out, from);
  const bias = b ? weights.vector(b) : 0;
  product(from, [{ matrix: { ...weights.matrix(w), bias }, out: y }], lowering);
  for (const each of w.lowRank ?? []) {
    const inner = list.make({ name: "lowRank.inner", dim: each.a.outDim }, from);
    product(from, [{ matrix: weights.matrix(each.a), out: inner }], lowering);
    product(inner, [{ matrix: weights.matrix(each.b), out: y }], lowering, { accumulate: 1 });
  }
  return y;
}

/** The same for the experts of each row. */
function expertProducts(
  from: Activation,
  wanted: readonly { w: Weight; out: Activation }[],
  groups: number,
  lowering: Lowering,
): void {
  const { list, weights } = lowering;
  const run = (x: Activation, each: readonly { w: Weight; out: Activation }[], accumulate = 0): void =>
    product(
      x,
      each.map(({ w, out }) => ({ matrix: weights.matrix(w), out })),
      lowering,
      { groups, accumulate },
    );
  run(from, wanted);
  for (const { w, out } of wanted) {
    for (const { a, b } of w.lowRank ?? []) {
      const inner = list.make({ name: "lowRank.inner", dim: a.outDim }, out);
      run(from, [{ w: a, out: inner }]);
      run(inner, [{ w: b, out }], 1);
    }
  }
}

/** One record for the products, or a part of the record before where that has the same input. */
function product(
  x: Activation,
  products: readonly Product[],
  lowering: Lowering,
  { accumulate = 0, groups = 0 }: { accumulate?: number; groups?: number } = {},
): void {
  const { list, precise } = lowering;
  const isFloat = ({ type }: MatrixValues): boolean => precise || type === 0 || type === 1 || type === 30;
  const matrices = products.map(({ matrix, out }) => ({ ...matrix, out: out.address }));
  lowering.scratchFloats = Math.max(lowering.scratchFloats, panelFloats(x.dim));
  const last = list.last("linear");
  const known = last?.values.matrices ?? [];
  const packed = matrices.every(isFloat) ? 0 : list.packed(x);
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
    last.values = { ...last.values, packed: packed || (last.values.packed ?? 0), count: all.length, matrices: all };
    return;
  }
  const rows = products[0]!.out;
  list.add("linear", rows, {
    x: x.address,
    packed,
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
const panelFloats = (n: number): number => (Math.ceil(n / 256) * 256 + 64) * 32;

/** (inDim, outDim) of a small matrix, as ours. */
function transposed(w: Weight, { source, weights }: Lowering): MatrixValues {
  const rows = unpackRows(source, w, { expert: 0, first: 0, out: new Float32Array(w.outDim * w.inDim) });
  const turned = new Float32Array(rows.length);
  for (let r = 0; r < w.outDim; r++)
    for (let i = 0; i < w.inDim; i++) turned[i * w.outDim + r] = rows[r * w.inDim + i]!;
  return { data: weights.constant(turned), rowBytes: 4 * w.outDim, rows: w.inDim, outDim: w.inDim, type: 0 };
}

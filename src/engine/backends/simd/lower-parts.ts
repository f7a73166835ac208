/** Lowers norms, elementwise steps, copies, and recurrent steps to records. */
import { ACTS } from "../../../../kernels/simd/layout.ts";
import { assert } from "../../../base/index.ts";
import type { Activation as Act, Buf, Ops, Step, Weight } from "../../program/step.ts";
import { unpackRows } from "../../program/unpack.ts";
import { changed, gate, inPlace, type Lowering } from "./lowering.ts";

type PartOp =
  | "rmsNorm"
  | "bareRmsNorm"
  | "l2Norm"
  | "layerNorm"
  | "bareLayerNorm"
  | "headLinear"
  | "causalConv"
  | "centeredConv"
  | "previousRow"
  | "compress"
  | "deltaRule"
  | "wkv"
  | "selectiveScan"
  | "multiply"
  | "activate"
  | "multiplyVector"
  | "matchLength"
  | "keepLargest"
  | "clamp"
  | "streamWeights"
  | "mixParts"
  | "slice"
  | "join";

/** Limit of a kernel's scratch on the stack. */
const STATE_DIM_MAX = 1024;

export const partOps: Pick<Ops<void, Lowering>, PartOp> = {
  rmsNorm: (step, lowering) => norm("rmsNorm", { ...step, run: step.w.inDim }, lowering),
  bareRmsNorm: (step, lowering) => norm("rmsNorm", step, lowering),
  l2Norm: (step, lowering) => norm("rmsNorm", { ...step, sum: 1 }, lowering),
  layerNorm: (step, lowering) => norm("layerNorm", { ...step, run: step.w.inDim }, lowering),
  bareLayerNorm: (step, lowering) => norm("layerNorm", { ...step, run: step.x.dim }, lowering),

  headLinear({ out, x, w, transposed }, lowering) {
    const { list, weights } = lowering;
    const from = list.get(x);
    const y = list.make(out, from);
    lowering.scratchFloats = Math.max(lowering.scratchFloats, w.inDim);
    list.add("headLinear", y, {
      x: from.address,
      out: y.address,
      matrix: weights.matrix(w),
      n: w.inDim,
      heads: w.experts,
      transposed: transposed ? 1 : 0,
    });
  },

  causalConv: (step, lowering) => conv(step, lowering),
  centeredConv: (step, lowering) => conv(step, lowering),
  previousRow: (step, lowering) => conv(step, lowering),

  compress(step, lowering) {
    const { list, weights } = lowering;
    const { x, gate, bias, out, ratio, overlap } = step;
    const from = list.get(x);
    const y = list.make(out, from);
    list.add("compress", y, {
      x: from.address,
      gate: list.get(gate).address,
      bias: weights.vector(bias),
      out: y.address,
      state: stateOf(step, lowering),
      dim: out.dim,
      width: x.dim,
      ratio,
      cells: (overlap ? 2 : 1) * ratio - 1,
    });
  },

  deltaRule(step, lowering) {
    const { list, weights } = lowering;
    const { nHeads, nKeyHeads, headDim, heads, scale, a, dt } = step;
    assert(headDim <= STATE_DIM_MAX, `deltaRule of layer ${step.layer}: heads of ${headDim}`);
    const at = (buf: Buf): number => list.get(buf).address;
    const y = list.make(step.out, list.get(step.v));
    list.add("deltaRule", y, {
      q: at(step.q),
      k: at(step.k),
      v: at(step.v),
      alpha: at(step.alpha),
      beta: at(step.beta),
      a: weights.vector(a),
      dt: weights.vector(dt),
      out: y.address,
      state: stateOf(step, lowering),
      heads: nHeads,
      keyHeads: nKeyHeads,
      headDim,
      alphas: step.alpha.dim / nHeads,
      repeat: heads === "repeat" ? 1 : 0,
      scale,
      bound: step.bound ?? 0,
    });
  },

  wkv(step, lowering) {
    const { list } = lowering;
    const { nHeads, nKeyHeads, headDim, a, b } = step;
    assert(headDim <= STATE_DIM_MAX, `wkv of layer ${step.layer}: heads of ${headDim}`);
    const at = (buf: Buf | undefined): number => (buf ? list.get(buf).address : 0);
    const y = list.make(step.out, list.get(step.r));
    list.add("wkv", y, {
      r: at(step.r),
      w: at(step.w),
      k: at(step.k),
      v: at(step.v),
      a: at(a),
      b: at(b),
      out: y.address,
      state: stateOf(step, lowering),
      heads: nHeads,
      keyHeads: nKeyHeads,
      headDim,
      early: step.early ? 1 : 0,
      complement: step.complement ? 1 : 0,
      bound: step.bound ?? 0,
    });
  },

  selectiveScan(step, lowering) {
    const { list, weights } = lowering;
    const { nHeads, headDim, stateDim, nGroups, a } = step;
    assert(stateDim <= STATE_DIM_MAX, `selectiveScan of layer ${step.layer}: states of ${stateDim}`);
    const at = (buf: Buf): number => list.get(buf).address;
    const y = list.make(step.out, list.get(step.x));
    list.add("selectiveScan", y, {
      x: at(step.x),
      dt: at(step.dt),
      b: at(step.b),
      c: at(step.c),
      dtBias: weights.vector(step.dtB),
      a: weights.vector(a),
      d: weights.vector(step.d),
      out: y.address,
      state: stateOf(step, lowering),
      heads: nHeads,
      headDim,
      stateDim,
      groups: nGroups,
      decays: a.inDim * a.outDim === nHeads ? 1 : stateDim,
    });
  },

  multiply({ out, a, b, act }, { list }) {
    const [left, right] = [list.get(a), list.get(b)];
    const y = out.name === b.name ? inPlace(list, out, right) : inPlace(list, out, left);
    const values = { a: left.address, b: right.address, out: y.address };
    list.add("multiply", y, { ...values, n: a.dim, narrow: b.dim, act: actOf(act) });
  },

  activate: ({ x, act }, lowering) => gate({ gate: lowering.list.get(x), up: undefined, act }, lowering),

  multiplyVector({ x, w, divide = false }, { list, weights, source }) {
    const y = changed(list, x);
    const inverted = (): number => {
      const values = unpackRows(source, w, { expert: 0, first: 0, out: new Float32Array(w.inDim) });
      return weights.constant(values.map((value) => 1 / value));
    };
    const vector = divide ? inverted() : weights.vector(w);
    list.add("multiplyVector", y, { x: y.address, vector, n: x.dim, narrow: w.inDim });
  },

  matchLength({ x, like }, { list }) {
    const other = list.get(like);
    const y = changed(list, x);
    list.add("matchLength", y, { x: y.address, like: other.address, n: x.dim, likeN: like.dim });
  },

  keepLargest({ x, factor }, { list }) {
    const y = changed(list, x);
    list.add("keepLargest", y, { x: y.address, n: x.dim, factor });
  },

  clamp({ x, min, max }, { list }) {
    const y = changed(list, x);
    list.add("clamp", y, { x: y.address, n: x.dim, min, max });
  },

  streamWeights({ x, scale, base, streams, eps, iterations }, { list, weights }) {
    const y = changed(list, x);
    const parts = { scale: weights.vector(scale), base: weights.vector(base) };
    list.add("streamWeights", y, { x: y.address, ...parts, n: x.dim, streams, iterations, eps });
  },

  mixParts({ out, x, weights, at, parts }, { list }) {
    const [from, by] = [list.get(x), list.get(weights)];
    const y = list.make(out, from);
    const n = x.dim / parts;
    const values = { x: from.address, weights: by.address, out: y.address };
    list.add("mixParts", y, { ...values, n, parts, outs: out.dim / n, weightsN: by.dim, at });
  },

  slice({ out, x, heads, at }, { list }) {
    const from = list.get(x);
    const y = list.make(out, from);
    list.add("slice", y, { x: from.address, out: y.address, heads, from: x.dim / heads, to: out.dim / heads, at });
  },

  join({ out, a, b, heads }, { list }) {
    const [left, right] = [list.get(a), list.get(b)];
    const y = list.make(out, left);
    const values = { a: left.address, b: right.address, out: y.address, heads };
    list.add("join", y, { ...values, first: a.dim / heads, second: b.dim / heads });
  },
};

type Conv = Extract<Step, { op: "causalConv" | "centeredConv" | "previousRow" }>;

/** A row's previous row is a convolution with two taps, of which only the first is used. */
function conv(step: Conv, lowering: Lowering): void {
  const { list, weights } = lowering;
  const { w, b, act } = step.op === "previousRow" ? {} : step;
  const [n, taps] = [step.x.dim, w?.inDim ?? 2];
  const from = list.get(step.x);
  const y = step.op === "causalConv" ? inPlace(list, step.out, from) : list.make(step.out, from);
  list.add("causalConv", y, {
    x: from.address,
    out: y.address,
    state: step.op === "centeredConv" ? 0 : stateOf(step, lowering),
    weight: w ? weights.vector(w) : weights.constant(Float32Array.from({ length: n * taps }, (_, i) => 1 - (i % taps))),
    bias: b ? weights.vector(b) : 0,
    n,
    taps,
    act: actOf(act),
  });
}

const actOf = (act: Act | undefined): number => (act === undefined ? -1 : ACTS[act]);

interface Norm {
  readonly out: Buf;
  readonly x: Buf;
  readonly run: number;
  readonly eps: number;
  readonly w?: Weight;
  readonly b?: Weight;
  /** 1: by the sum of squares instead of the mean. */
  readonly sum?: number;
}

function norm(kind: "rmsNorm" | "layerNorm", { out, x, run, eps, w, b, sum = 0 }: Norm, lowering: Lowering): void {
  const { list, weights } = lowering;
  const from = list.get(x);
  const y = inPlace(list, out, from);
  const weight = w ? weights.vector(w) : 0;
  const rest = { weight, weightRows: w?.outDim ?? 1, n: run, runs: x.dim / run, eps };
  if (kind === "rmsNorm") list.add(kind, y, { x: from.address, out: y.address, ...rest, sum });
  else list.add(kind, y, { x: from.address, out: y.address, ...rest, bias: b ? weights.vector(b) : 0 });
}

function stateOf(step: Step, { kept }: Lowering): number {
  const state = kept.get(step);
  assert(state, `no state for a step '${step.op}'`);
  return state.address;
}

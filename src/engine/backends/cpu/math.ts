/** Products and activation functions of the reference: sums in float64. */
import { assert } from "../../../base/index.ts";
import type { Activation, GateLimit, Gating, LowRank, OfferedChange, Weight } from "../../program/step.ts";
import { rowOf, type Matrix, type Pass } from "./pass.ts";
import { PANEL_ROWS } from "./weights.ts";

/** out = W · x + b, row by row, with the low-rank changes of W. */
export function matmul(
  out: Matrix,
  x: Matrix,
  { w, b, expert = 0 }: { w: Weight; b?: Weight | undefined; expert?: number },
  pass: Pass,
): void {
  if (x.rows === 0) return;
  const bias = b ? vector(b, pass, expert).slice() : new Float32Array(w.outDim);
  for (let first = 0; first < w.outDim; first += PANEL_ROWS) {
    const count = Math.min(PANEL_ROWS, w.outDim - first);
    const panel = pass.weights.panel(w, { expert, first, count });
    const own = bias.subarray(first, first + count);
    for (let r = 0; r < x.rows; r++) {
      const row = x.data.subarray(r * x.dim, r * x.dim + w.inDim);
      multiply(panel, row, own, out.data.subarray(r * out.dim + first, r * out.dim + first + count));
    }
  }
  for (const change of w.lowRank ?? []) addLowRank(out, x, { change, expert }, pass);
  for (const change of w.offered ?? []) addOffered(out, x, change, pass);
}

/** out = W · x + bias: four rows at once, so that no addition waits for the one before. */
function multiply(w: Float32Array, x: Float32Array, bias: Float32Array, out: Float32Array): void {
  const len = x.length;
  const fours = out.length - (out.length % 4);
  for (let o = 0; o < fours; o += 4) {
    const a = o * len;
    const b = a + len;
    const c = b + len;
    const d = c + len;
    let s0 = 0;
    let s1 = 0;
    let s2 = 0;
    let s3 = 0;
    for (let i = 0; i < len; i++) {
      const value = x[i]!;
      s0 += w[a + i]! * value;
      s1 += w[b + i]! * value;
      s2 += w[c + i]! * value;
      s3 += w[d + i]! * value;
    }
    out[o] = s0 + bias[o]!;
    out[o + 1] = s1 + bias[o + 1]!;
    out[o + 2] = s2 + bias[o + 2]!;
    out[o + 3] = s3 + bias[o + 3]!;
  }
  for (let o = fours; o < out.length; o++) {
    let sum = 0;
    for (let i = 0; i < len; i++) sum += w[o * len + i]! * x[i]!;
    out[o] = sum + bias[o]!;
  }
}

/** out += b · (a · x) */
function addLowRank(
  out: Matrix,
  x: Matrix,
  { change: { a, b }, expert }: { change: LowRank; expert: number },
  pass: Pass,
): void {
  const inner = pass.make({ name: "lowRank.inner", dim: a.outDim }, x.rows);
  const change = pass.make({ name: "lowRank.change", dim: b.outDim }, x.rows);
  matmul(inner, x, { w: a, expert }, pass);
  matmul(change, inner, { w: b, expert }, pass);
  for (let i = 0; i < change.rows * change.dim; i++) out.data[i]! += change.data[i]!;
}

/** out[r] += scale · b · (a · x[r]) for the adapters of row r, of all rows or of the wanted ones. */
function addOffered(out: Matrix, x: Matrix, { a, b, members }: OfferedChange, pass: Pass): void {
  const all = x.rows === pass.tokens.length;
  assert(all || x.rows === pass.wanted.length, `adapters of ${x.rows} rows`);
  const inner = pass.make({ name: "lowRank.inner", dim: a.outDim }, 1);
  const change = pass.make({ name: "lowRank.change", dim: b.outDim }, 1);
  for (let r = 0; r < x.rows; r++) {
    for (const { adapter, scale } of pass.adapters[all ? r : pass.wanted[r]!]!) {
      const expert = members.indexOf(adapter);
      if (expert < 0) continue;
      matmul(inner, rowOf(x, r), { w: a, expert }, pass);
      for (let i = 0; i < inner.dim; i++) inner.data[i]! *= scale;
      matmul(change, inner, { w: b, expert }, pass);
      for (let i = 0; i < change.dim; i++) out.data[r * out.dim + i]! += change.data[i]!;
    }
  }
}

/**
 * Four running sums, so that no addition waits for the one before. Two other forms take twice as long: sums that come
 * from an array, and indexes without `| 0`, which keeps them within 32 bits.
 */
export function dot(a: Float32Array, aAt: number, b: Float32Array, bAt: number, len: number): number {
  let s0 = 0;
  let s1 = 0;
  let s2 = 0;
  let s3 = 0;
  let i = 0;
  for (const fours = len & ~3; i < fours; i += 4) {
    const p = (aAt + i) | 0;
    const q = (bAt + i) | 0;
    s0 += a[p]! * b[q]!;
    s1 += a[(p + 1) | 0]! * b[(q + 1) | 0]!;
    s2 += a[(p + 2) | 0]! * b[(q + 2) | 0]!;
    s3 += a[(p + 3) | 0]! * b[(q + 3) | 0]!;
  }
  for (; i < len; i++) s0 += a[aAt + i]! * b[bAt + i]!;
  return s0 + s1 + (s2 + s3);
}

/** A vector of weights: one row, for stacked weights an expert's. Valid until the next read. */
export const vector = (w: Weight, pass: Pass, expert = 0): Float32Array =>
  pass.weights.panel(w, { expert, first: 0, count: 1 });

/** A small weight as a whole, (outDim, inDim), a copy. */
export function wholeWeight(w: Weight, pass: Pass, expert = 0): Float32Array {
  const out = new Float32Array(w.outDim * w.inDim);
  for (let first = 0; first < w.outDim; first += PANEL_ROWS) {
    const count = Math.min(PANEL_ROWS, w.outDim - first);
    out.set(pass.weights.panel(w, { expert, first, count }), first * w.inDim);
  }
  return out;
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

/** ln(1 + e^x), which is about x for large x. (`ggml_compute_softplus_f32`) */
export const softplus = (x: number): number => (x > 20 ? x : Math.log1p(Math.exp(x)));

export const activations: Readonly<Record<Activation, (x: number) => number>> = {
  silu: (x) => x * sigmoid(x),
  gelu: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * x * (1 + 0.044715 * x * x))),
  gelu_erf: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  relu: (x) => Math.max(0, x),
  relu_sqr: (x) => Math.max(0, x) ** 2,
  sigmoid,
  tanh: Math.tanh,
  softplus,
  elu: (x) => (x > 0 ? x : Math.expm1(x)),
};

const OAI_ALPHA = 1.702;
const OAI_LIMIT = 7;

const softCapped = (x: number, cap: number): number => (cap > 0 ? cap * Math.tanh(x / cap) : x);

/** Combines gate and up to the input of down. */
function gatingOf(act: Gating, limit: GateLimit | undefined): (gate: number, up: number) => number {
  if (act !== "swiglu_oai") {
    const activate = activations[act];
    if (!limit) return (gate, up) => activate(gate) * up;
    if (limit.soft) return (gate, up) => softCapped(gate, limit.gate) * sigmoid(gate) * softCapped(up, limit.up);
    return (gate, up) => Math.min(activate(gate), limit.gate) * Math.max(-limit.up, Math.min(up, limit.up));
  }
  return (gate, up) => {
    const g = Math.min(gate, OAI_LIMIT);
    return g * sigmoid(OAI_ALPHA * g) * (Math.max(-OAI_LIMIT, Math.min(up, OAI_LIMIT)) + 1);
  };
}

/** x = act(x) */
export function activateAll({ data, rows, dim }: Matrix, act: Activation): void {
  const activate = activations[act];
  for (let i = 0; i < rows * dim; i++) data[i] = activate(data[i]!);
}

/** up = the combination of gate and up */
export function gateInPlace(
  up: Matrix,
  gate: Matrix,
  { act, limit }: { act: Gating; limit?: GateLimit | undefined },
): void {
  const meet = gatingOf(act, limit);
  for (let i = 0; i < up.rows * up.dim; i++) up.data[i] = meet(gate.data[i]!, up.data[i]!);
}

/**
 * The error function by its Maclaurin series, whose terms stay small enough up to 4; beyond that it is 1 within 2e-8.
 */
export function erf(x: number): number {
  if (Math.abs(x) > 4) return Math.sign(x);
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
    term *= (-x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

/**
 * What each step means: the reference that every other backend is compared with. Obvious loops, sums in float64,
 * activations in float32; nothing depends on how rows are batched, so the same tokens give the same bits in any split.
 */
import { AppError, assert } from "../../base/errors.ts";
import { rotateHead, type RopeTable } from "../rope.ts";
import type { Activation, Buf, LowRank, Ops, RopeScaling, Step, Weight } from "../step.ts";
import { PANEL_ROWS, type WeightReader } from "./weights.ts";

/** An activation of this pass. */
export interface Matrix {
  readonly data: Float32Array; // (rows, dim), perhaps longer
  readonly rows: number;
  readonly dim: number;
}

/** Keys, rotated, and values of one layer. */
export interface KvLayer {
  readonly k: Float32Array; // (slots, ctxLen, nKvHeads · headDim)
  readonly v: Float32Array; // (slots, ctxLen, nKvHeads · headDim)
}

/** Everything that a run of the steps reads and writes. */
export interface Pass {
  readonly tokens: Int32Array; // (rows)
  /** What the rows begin with, where the steps begin with an `input`. */
  readonly input: Float32Array; // (rows, dim)
  readonly slots: Int32Array; // (rows)
  /** Which entry of the batch a row belongs to; rows of one are neighbours. */
  readonly sequences: Int32Array; // (rows)
  readonly positions: Int32Array; // (rows)
  /** Indexes of the rows whose logits or states are wanted. */
  readonly wanted: Int32Array;
  readonly ctxLen: number;
  /** Scratch of one head's attention. */
  readonly scores: Float64Array; // (ctxLen)
  /** By layer. */
  readonly kv: ReadonlyMap<number, KvLayer>;
  readonly ropes: ReadonlyMap<RopeScaling, RopeTable>;
  readonly weights: WeightReader;
  /** Room for `rows` rows of a buffer, contents undefined. */
  make(buf: Buf, rows: number): Matrix;
  /** What an earlier step wrote. */
  get(buf: Buf): Matrix;
}

/** Runs one step. */
export function runStep(step: Step, pass: Pass): void {
  // TypeScript cannot see that ops[step.op] takes the very step it was indexed by.
  (ops[step.op] as (step: Step, pass: Pass) => void)(step, pass);
}

const ops: Ops<void, Pass> = {
  embed({ out, table, scale }, pass) {
    const y = pass.make(out, pass.tokens.length);
    for (let r = 0; r < y.rows; r++) {
      const token = pass.tokens[r]!;
      if (token < 0 || token >= table.outDim) {
        throw new AppError("bad_request", `token ${token}: expected an id of 0 … ${table.outDim - 1}`);
      }
      const row = pass.weights.row(table, token);
      for (let i = 0; i < y.dim; i++) y.data[r * y.dim + i] = row[i]! * scale;
    }
  },

  input({ out }, pass) {
    const y = pass.make(out, pass.tokens.length);
    assert(pass.input.length === y.rows * y.dim, `input of ${pass.input.length} values for ${y.rows} rows of ${y.dim}`);
    y.data.set(pass.input);
  },

  rmsNorm({ out, x, w, eps }, pass) {
    const input = pass.get(x);
    const y = out.name === x.name ? input : pass.make(out, input.rows);
    const weight = vector(w, pass);
    const runs = (input.rows * input.dim) / w.inDim;
    for (let run = 0; run < runs; run++) {
      const at = run * w.inDim;
      let squares = 0;
      for (let i = at; i < at + w.inDim; i++) squares += input.data[i]! * input.data[i]!;
      const inverse = 1 / Math.sqrt(squares / w.inDim + eps);
      for (let i = 0; i < w.inDim; i++) y.data[at + i] = input.data[at + i]! * inverse * weight[i]!;
    }
  },

  layerNorm({ out, x, w, b, eps }, pass) {
    const input = pass.get(x);
    const y = out.name === x.name ? input : pass.make(out, input.rows);
    const weight = vector(w, pass).slice();
    const bias = b && vector(b, pass);
    for (let r = 0; r < y.rows; r++) {
      const at = r * y.dim;
      const row = input.data.subarray(at, at + y.dim);
      const mean = row.reduce((sum, value) => sum + value, 0) / y.dim;
      const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / y.dim;
      const inverse = 1 / Math.sqrt(variance + eps);
      for (let i = 0; i < y.dim; i++) y.data[at + i] = (row[i]! - mean) * inverse * weight[i]! + (bias?.[i] ?? 0);
    }
  },

  linear({ out, x, w, b }, pass) {
    matmul(pass.make(out, pass.get(x).rows), pass.get(x), w, b, pass);
  },

  rope({ x, heads, headDim, rope }, pass) {
    const y = pass.get(x);
    const table = pass.ropes.get(rope);
    assert(table, "a rope without its table");
    for (let r = 0; r < y.rows; r++) {
      for (let h = 0; h < heads; h++) {
        rotateHead(y.data, r * y.dim + h * headDim, table, pass.positions[r]!, rope);
      }
    }
  },

  attention(step, pass) {
    const { nKvHeads, headDim } = step;
    const [q, k, v] = [pass.get(step.q), pass.get(step.k), pass.get(step.v)];
    const out = pass.make(step.out, q.rows);
    const layer = pass.kv.get(step.layer);
    assert(layer, `no KV cache for layer ${step.layer}`);
    const kvDim = nKvHeads * headDim;
    for (let r = 0; r < q.rows; r++) {
      const at = (pass.slots[r]! * pass.ctxLen + pass.positions[r]!) * kvDim;
      layer.k.set(k.data.subarray(r * kvDim, (r + 1) * kvDim), at);
      layer.v.set(v.data.subarray(r * kvDim, (r + 1) * kvDim), at);
    }
    const scratch = { scores: pass.scores, sums: new Float64Array(headDim) };
    for (let r = 0; r < q.rows; r++) {
      for (let h = 0; h < step.nHeads; h++) {
        const at = r * q.dim + h * headDim;
        const base = pass.slots[r]! * pass.ctxLen * kvDim + Math.floor((h * nKvHeads) / step.nHeads) * headDim;
        attend({ q: q.data, out: out.data, at }, { layer, base, position: pass.positions[r]! }, step, scratch);
      }
    }
  },

  bidirectionalAttention(step, pass) {
    const [q, k, v] = [pass.get(step.q), pass.get(step.k), pass.get(step.v)];
    const out = pass.make(step.out, q.rows);
    for (let first = 0; first < q.rows;) {
      let end = first + 1;
      while (end < q.rows && pass.sequences[end] === pass.sequences[first]) end++;
      for (let h = 0; h < step.nHeads; h++) attendAll({ q, k, v, out }, { first, end, at: h * step.headDim }, step);
      first = end;
    }
  },

  mlp({ out, x, act, up, upB, down, downB }, pass) {
    const input = pass.get(x);
    const inner = pass.make({ name: "mlp.inner", dim: up.outDim }, input.rows);
    matmul(inner, input, up, upB, pass);
    const activate = activations[act];
    for (let i = 0; i < inner.rows * inner.dim; i++) inner.data[i] = activate(inner.data[i]!);
    matmul(pass.make(out, input.rows), inner, down, downB, pass);
  },

  gatedMlp({ out, x, act, ...w }, pass) {
    const input = pass.get(x);
    const gate = pass.make({ name: "gatedMlp.gate", dim: w.gate.outDim }, input.rows);
    const up = pass.make({ name: "gatedMlp.up", dim: w.up.outDim }, input.rows);
    matmul(gate, input, w.gate, w.gateB, pass);
    matmul(up, input, w.up, w.upB, pass);
    gateInPlace(up, gate, act);
    matmul(pass.make(out, input.rows), up, w.down, w.downB, pass);
  },

  moe(step, pass) {
    const input = pass.get(step.x);
    const out = pass.make(step.out, input.rows);
    const router = pass.make({ name: "moe.router", dim: step.router.outDim }, input.rows);
    matmul(router, input, step.router, undefined, pass);
    for (let r = 0; r < input.rows; r++) {
      const chosen = chooseExperts(router.data.subarray(r * router.dim, (r + 1) * router.dim), step);
      runExperts(rowOf(input, r), rowOf(out, r), chosen, step, pass);
    }
  },

  add({ out, a, b, scale }, pass) {
    const [left, right] = [pass.get(a), pass.get(b)];
    const y = out.name === a.name ? left : out.name === b.name ? right : pass.make(out, left.rows);
    for (let i = 0; i < y.rows * y.dim; i++) y.data[i] = left.data[i]! + right.data[i]! * scale;
  },

  positionScale({ x, coef, floorScale, offset }, pass) {
    const y = pass.get(x);
    for (let r = 0; r < y.rows; r++) {
      const factor = 1 + coef * Math.log(Math.floor((pass.positions[r]! + offset) / floorScale) + 1);
      for (let i = r * y.dim; i < (r + 1) * y.dim; i++) y.data[i]! *= factor;
    }
  },

  addPosition({ x, table }, pass) {
    const y = pass.get(x);
    for (let r = 0; r < y.rows; r++) {
      const position = pass.positions[r]!;
      assert(position < table.outDim, `position ${position} of ${table.outDim}`);
      const row = pass.weights.panel(table, { expert: 0, first: position, count: 1 });
      for (let i = 0; i < y.dim; i++) y.data[r * y.dim + i]! += row[i]!;
    }
  },

  addVector({ x, w }, pass) {
    const y = pass.get(x);
    const values = vector(w, pass);
    for (let i = 0; i < y.rows * y.dim; i++) y.data[i]! += values[i % y.dim]!;
  },

  takeRows({ out, x }, pass) {
    const input = pass.get(x);
    const y = pass.make(out, pass.wanted.length);
    for (let r = 0; r < y.rows; r++) {
      const at = pass.wanted[r]! * y.dim;
      y.data.set(input.data.subarray(at, at + y.dim), r * y.dim);
    }
  },

  softCap({ x, cap }, pass) {
    const y = pass.get(x);
    for (let i = 0; i < y.rows * y.dim; i++) y.data[i] = cap * Math.tanh(y.data[i]! / cap);
  },

  scale({ x, by }, pass) {
    const y = pass.get(x);
    for (let i = 0; i < y.rows * y.dim; i++) y.data[i]! *= by;
  },
};

/** out = W · x + b, row by row, W with its low-rank changes. */
function matmul(out: Matrix, x: Matrix, w: Weight, b: Weight | undefined, pass: Pass, expert = 0): void {
  if (x.rows === 0) return;
  const bias = b ? Float32Array.from(vector(b, pass)) : undefined;
  for (let first = 0; first < w.outDim; first += PANEL_ROWS) {
    const count = Math.min(PANEL_ROWS, w.outDim - first);
    const panel = pass.weights.panel(w, { expert, first, count });
    for (let r = 0; r < x.rows; r++) {
      for (let o = 0; o < count; o++) {
        const sum = dot(panel, o * w.inDim, x.data, r * x.dim, w.inDim);
        out.data[r * out.dim + first + o] = bias ? sum + bias[first + o]! : sum;
      }
    }
  }
  for (const change of w.lowRank ?? []) addLowRank(out, x, change, pass, expert);
}

/** out += b · (a · x) */
function addLowRank(out: Matrix, x: Matrix, { a, b }: LowRank, pass: Pass, expert: number): void {
  const inner = pass.make({ name: "lowRank.inner", dim: a.outDim }, x.rows);
  const change = pass.make({ name: "lowRank.change", dim: b.outDim }, x.rows);
  matmul(inner, x, a, undefined, pass, expert);
  matmul(change, inner, b, undefined, pass, expert);
  for (let i = 0; i < change.rows * change.dim; i++) out.data[i]! += change.data[i]!;
}

/** Four running sums: a single one would wait for itself on every addition. */
function dot(a: Float32Array, aAt: number, b: Float32Array, bAt: number, len: number): number {
  let [s0, s1, s2, s3] = [0, 0, 0, 0];
  let i = 0;
  for (; i + 3 < len; i += 4) {
    s0 += a[aAt + i]! * b[bAt + i]!;
    s1 += a[aAt + i + 1]! * b[bAt + i + 1]!;
    s2 += a[aAt + i + 2]! * b[bAt + i + 2]!;
    s3 += a[aAt + i + 3]! * b[bAt + i + 3]!;
  }
  for (; i < len; i++) s0 += a[aAt + i]! * b[bAt + i]!;
  return s0 + s1 + (s2 + s3);
}

/** One head of one row over its sequence: positions from the window's start up to its own. */
function attend(
  head: { q: Float32Array; out: Float32Array; at: number },
  past: { layer: KvLayer; base: number; position: number },
  step: Step & { op: "attention" },
  { scores, sums }: { scores: Float64Array; sums: Float64Array },
): void {
  const { headDim, scale, window, softCap } = step;
  const { layer, base, position } = past;
  const kvDim = step.nKvHeads * headDim;
  const from = window > 0 ? Math.max(0, position - window + 1) : 0;
  let max = -Infinity;
  for (let t = from; t <= position; t++) {
    let score = scale * dot(layer.k, base + t * kvDim, head.q, head.at, headDim);
    if (softCap > 0) score = softCap * Math.tanh(score / softCap);
    scores[t] = score;
    max = Math.max(max, score);
  }
  let total = 0;
  sums.fill(0);
  for (let t = from; t <= position; t++) {
    const share = Math.exp(scores[t]! - max);
    total += share;
    for (let i = 0; i < headDim; i++) sums[i]! += share * layer.v[base + t * kvDim + i]!;
  }
  for (let i = 0; i < headDim; i++) head.out[head.at + i] = sums[i]! / total;
}

/** One head, at column `at`, of the rows `first` … `end − 1`, which all see each other. */
function attendAll(
  { q, k, v, out }: Readonly<Record<"q" | "k" | "v" | "out", Matrix>>,
  { first, end, at }: { first: number; end: number; at: number },
  { headDim, scale }: Step & { op: "bidirectionalAttention" },
): void {
  const scores = new Float64Array(end - first);
  for (let r = first; r < end; r++) {
    for (let t = first; t < end; t++) {
      scores[t - first] = scale * dot(k.data, t * k.dim + at, q.data, r * q.dim + at, headDim);
    }
    const max = scores.reduce((a, b) => Math.max(a, b), -Infinity);
    const shares = scores.map((score) => Math.exp(score - max));
    const total = shares.reduce((a, b) => a + b, 0);
    for (let i = 0; i < headDim; i++) {
      let sum = 0;
      for (let t = first; t < end; t++) sum += shares[t - first]! * v.data[t * v.dim + at + i]!;
      out.data[r * out.dim + at + i] = sum / total;
    }
  }
}

/** The `nUsed` most probable experts, best first (the lower index on a tie), and their weights. */
function chooseExperts(logits: Float32Array, step: Step & { op: "moe" }): { expert: number; weight: number }[] {
  const max = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const exps = Array.from(logits, (logit) => Math.exp(logit - max));
  const total = exps.reduce((a, b) => a + b, 0);
  const ranked = exps.map((exp, expert) => ({ expert, weight: exp / total })).sort((a, b) => b.weight - a.weight);
  const chosen = ranked.slice(0, step.nUsed);
  // The smallest normal float16 keeps the division finite (build_moe_ffn, llama-graph.cpp).
  const sum = Math.max(
    chosen.reduce((a, b) => a + b.weight, 0),
    2 ** -14,
  );
  return chosen.map(({ expert, weight }) => ({
    expert,
    weight: (step.normalize ? weight / sum : weight) * step.scale,
  }));
}

/** Runs one row through its experts and sums what they say. */
function runExperts(
  x: Matrix,
  out: Matrix,
  chosen: readonly { expert: number; weight: number }[],
  step: Step & { op: "moe" },
  pass: Pass,
): void {
  const gate = pass.make({ name: "moe.gate", dim: step.gate.outDim }, 1);
  const up = pass.make({ name: "moe.up", dim: step.up.outDim }, 1);
  const down = pass.make({ name: "moe.down", dim: step.down.outDim }, 1);
  const sums = new Float64Array(out.dim);
  for (const { expert, weight } of chosen) {
    matmul(gate, x, step.gate, undefined, pass, expert);
    matmul(up, x, step.up, undefined, pass, expert);
    gateInPlace(up, gate, step.act);
    matmul(down, up, step.down, undefined, pass, expert);
    for (let i = 0; i < out.dim; i++) sums[i]! += weight * down.data[i]!;
  }
  out.data.set(sums);
}

/** up = act(gate) ⊙ up */
function gateInPlace(up: Matrix, gate: Matrix, act: Activation): void {
  const activate = activations[act];
  for (let i = 0; i < up.rows * up.dim; i++) up.data[i] = activate(gate.data[i]!) * up.data[i]!;
}

const activations: Readonly<Record<Activation, (x: number) => number>> = {
  silu: (x) => x / (1 + Math.exp(-x)),
  gelu: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * x * (1 + 0.044715 * x * x))),
  gelu_erf: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  relu: (x) => Math.max(0, x),
  relu_sqr: (x) => Math.max(0, x) ** 2,
};

/** The error function by its Maclaurin series, whose terms stay small enough up to 4; beyond it is 1 to within 2e-8. */
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

/** A vector of weights: one row. */
function vector(w: Weight, pass: Pass): Float32Array {
  return pass.weights.panel(w, { expert: 0, first: 0, count: 1 });
}

function rowOf(m: Matrix, r: number): Matrix {
  return { data: m.data.subarray(r * m.dim, (r + 1) * m.dim), rows: 1, dim: m.dim };
}

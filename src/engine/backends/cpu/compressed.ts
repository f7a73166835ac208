/**
 * Compressed blocks of positions in the reference: the vector of a block, and the attention that reads such vectors.
 */
import type { Ops, Step } from "../../program/step.ts";
import { cacheOf, store } from "./attention.ts";
import { dot, vector, wholeWeight } from "./math.ts";
import { rowOf, type Matrix, type Pass } from "./pass.ts";
import { stateFor } from "./recurrent.ts";

type CompressedAttention = Extract<Step, { op: "compressedAttention" }>;

export const compressedOps: Pick<Ops<void, Pass>, "compress" | "compressedAttention"> = {
  compress(step, pass) {
    const [x, gate] = [pass.get(step.x), pass.get(step.gate)];
    const y = pass.make(step.out, x.rows);
    const bias = wholeWeight(step.bias, pass).slice();
    for (let r = 0; r < x.rows; r++) {
      const past = stateFor(step, r, pass); // rows of x and gate side by side
      const row = new Float32Array(2 * x.dim);
      row.set(rowOf(x, r).data);
      row.set(rowOf(gate, r).data, x.dim);
      const rows = new Float32Array(past.length + row.length);
      rows.set(past);
      rows.set(row, past.length);
      const end = pass.cells[r]! + 1;
      const out = rowOf(y, r).data.fill(0);
      if (end % step.ratio === 0) average(rows, { step, bias, hasPrevious: end > step.ratio }, out);
      past.set(rows.subarray(row.length));
    }
  },

  compressedAttention(step, pass) {
    const { k, v: entries } = cacheOf(step.layer, pass);
    store(k, pass.get(step.k), pass);
    store(entries, pass.get(step.entries), pass);
    const q = pass.get(step.q);
    const y = pass.make(step.out, q.rows);
    const sinks = step.sinks && vector(step.sinks, pass).slice();
    for (let r = 0; r < q.rows; r++) {
      const seen = vectorsOf(step, { k, entries, r }, pass);
      for (let head = 0; head < step.nHeads; head++) attend(step, { q, y, r, head, seen, sink: sinks?.[head] });
    }
  },
};

/** The vector of the block that the last rows form, from their x and gate. @param rows (rows, 2 · x.dim) */
function average(
  rows: Float32Array,
  {
    step: { ratio, x, overlap },
    bias,
    hasPrevious,
  }: { step: Extract<Step, { op: "compress" }>; bias: Float32Array; hasPrevious: boolean },
  out: Float32Array,
): void {
  const count = rows.length / (2 * x.dim);
  for (let channel = 0; channel < out.length; channel++) {
    const terms = Array.from({ length: ratio }, (_, j) => [j, count - ratio + j, overlap ? out.length : 0] as const);
    if (overlap && hasPrevious) for (let j = 0; j < ratio; j++) terms.push([j, j, 0]);
    const scores = terms.map(([j, row, half]) => {
      return rows[row * 2 * x.dim + x.dim + half + channel]! + bias[j * x.dim + half + channel]!;
    });
    const max = scores.reduce((a, b) => Math.max(a, b), -Infinity);
    let [total, sum] = [0, 0];
    for (const [i, [, row, half]] of terms.entries()) {
      const share = Math.exp(scores[i]! - max);
      total += share;
      sum += share * rows[row * 2 * x.dim + half + channel]!;
    }
    out[channel] = sum / total;
  }
}

/** The vectors that a row attends to: keys of its window, and entries of earlier blocks. */
function vectorsOf(
  { headDim, window, ratio, chosen }: CompressedAttention,
  { k, entries, r }: { k: Float32Array; entries: Float32Array; r: number },
  pass: Pass,
): Float32Array[] {
  const [base, cell] = [pass.slots[r]! * pass.ctxLen, pass.cells[r]!];
  const own = chosen && new Set(rowOf(pass.get(chosen), r).data);
  const seen: Float32Array[] = [];
  const add = (cache: Float32Array, t: number): void => {
    seen.push(cache.subarray((base + t) * headDim, (base + t + 1) * headDim));
  };
  for (let t = Math.max(0, cell - window + 1); t <= cell; t++) add(k, t);
  for (let t = ratio - 1; t <= cell; t += ratio) if (own?.has((t + 1) / ratio - 1) ?? true) add(entries, t);
  return seen;
}

interface Head {
  readonly q: Matrix;
  readonly y: Matrix;
  readonly r: number;
  readonly head: number;
  readonly seen: readonly Float32Array[];
  readonly sink: number | undefined;
}

function attend({ headDim, scale }: CompressedAttention, { q, y, r, head, seen, sink }: Head): void {
  const scores = seen.map((key) => scale * dot(key, 0, q.data, r * q.dim + head * headDim, headDim));
  const max = scores.reduce((a, b) => Math.max(a, b), sink ?? -Infinity);
  const shares = scores.map((score) => Math.exp(score - max));
  const total = shares.reduce((a, b) => a + b, sink === undefined ? 0 : Math.exp(sink - max));
  for (let i = 0; i < headDim; i++) {
    let sum = 0;
    for (const [at, share] of shares.entries()) sum += share * seen[at]![i]!;
    y.data[r * y.dim + head * headDim + i] = sum / total;
  }
}

/** Parallel streams in the reference: the weights of hyper-connections, and sums by such weights. */
import type { Ops } from "../../program/step.ts";
import { activations, vector } from "./math.ts";
import { rowOf, type Pass } from "./pass.ts";

export const streamOps: Pick<Ops<void, Pass>, "streamWeights" | "mixParts"> = {
  streamWeights({ x, scale, base, streams: n, eps, iterations }, pass) {
    const y = pass.get(x);
    const [factors, bases] = [vector(scale, pass).slice(), vector(base, pass).slice()];
    for (let r = 0; r < y.rows; r++) {
      const row = rowOf(y, r).data;
      for (let i = 0; i < y.dim; i++) {
        const value = row[i]! * factors[Math.min(2, Math.floor(i / n))]! + bases[i]!;
        row[i] = i < n ? activations.sigmoid(value) + eps : i < 2 * n ? 2 * activations.sigmoid(value) : value;
      }
      if (y.dim > n) balance(row.subarray(2 * n), { n, eps, iterations });
    }
  },

  mixParts({ out, x, weights, at, parts }, pass) {
    const [input, w] = [pass.get(x), pass.get(weights)];
    const y = pass.make(out, input.rows);
    const len = input.dim / parts;
    const outs = y.dim / len;
    for (let r = 0; r < y.rows; r++) {
      for (let i = 0; i < y.dim; i++) {
        const j = Math.floor(i / len);
        let sum = 0;
        for (let part = 0; part < parts; part++) {
          sum += w.data[r * w.dim + at + part * outs + j]! * input.data[r * input.dim + part * len + (i % len)]!;
        }
        y.data[r * y.dim + i] = sum;
      }
    }
  },
};

/** Makes the sums of rows and columns nearly 1 (Sinkhorn and Knopp). @param m (n, n) */
function balance(m: Float32Array, { n, eps, iterations }: Record<"n" | "eps" | "iterations", number>): void {
  const values = Float64Array.from(m);
  for (let i = 0; i < n; i++) {
    const row = values.subarray(i * n, (i + 1) * n);
    const max = row.reduce((a, b) => Math.max(a, b), -Infinity);
    const exps = row.map((value) => Math.exp(value - max));
    const total = exps.reduce((a, b) => a + b, 0);
    row.set(exps.map((exp) => exp / total + eps));
  }
  /** Divides n values, `step` apart, by their sum. */
  const divide = (first: number, step: number): void => {
    let sum = eps;
    for (let i = 0; i < n; i++) sum += values[first + i * step]!;
    for (let i = 0; i < n; i++) values[first + i * step]! /= sum;
  };
  for (let time = 0; time < iterations; time++) {
    for (let i = 0; i < n && time > 0; i++) divide(i * n, 1);
    for (let j = 0; j < n; j++) divide(j, n);
  }
  m.set(values);
}

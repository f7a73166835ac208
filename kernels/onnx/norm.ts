/** Norms: over rows, or over equal parts of them, with one weight for all parts or several in turn. */
import type { Ops, Weight } from "../../src/engine/program/step.ts";
import { setValue, valueOf, type Lowering } from "./lowering.ts";
import { vectorOf } from "./matrix.ts";

type NormOp = "rmsNorm" | "bareRmsNorm" | "l2Norm" | "layerNorm" | "bareLayerNorm";

/** A norm of the library over the last axis. */
interface Norm {
  readonly op: "SimplifiedLayerNormalization" | "LayerNormalization";
  readonly eps: number;
  readonly w: Float32Array;
  readonly b?: Float32Array | undefined;
}

/** The norm of each run of a value, (…, dim). */
function normRuns({ graph }: Lowering, x: string, { run, dim }: { run: number; dim: number }, norm: Norm): string {
  const attributes = { axis: -1, epsilon: { float: norm.eps }, stash_type: 1 };
  const runs = run === dim ? x : graph.node("Reshape", [x, graph.ints([0, 0, dim / run, run])]);
  const isOne = norm.w.length === run;
  // several weights are applied after the norm: the operator takes one
  const vectors = isOne ? [norm.w, ...(norm.b ? [norm.b] : [])] : [new Float32Array(run).fill(1)];
  const inputs = [runs, ...vectors.map((values) => graph.floats(values))];
  let out = graph.node(norm.op, inputs, attributes);
  if (!isOne) {
    const each = (values: Float32Array): string => graph.floats(tiled(values, dim), [dim / run, run]);
    out = graph.node("Mul", [out, each(norm.w)]);
    if (norm.b) out = graph.node("Add", [out, each(norm.b)]);
  }
  return run === dim ? out : graph.node("Reshape", [out, graph.ints([0, 0, dim])]);
}

/** The values repeated to `length`. */
const tiled = (values: Float32Array, length: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => values[i % values.length]!);

export const norms: Pick<Ops<void, Lowering>, NormOp> = {
  rmsNorm({ out, x, w, eps }, lowering) {
    const norm = { op: "SimplifiedLayerNormalization", eps, w: vectorOf(lowering, w) } as const;
    setValue(lowering, out, normRuns(lowering, valueOf(lowering, x), { run: w.inDim, dim: x.dim }, norm));
  },
  bareRmsNorm({ out, x, run, eps }, lowering) {
    const norm = { op: "SimplifiedLayerNormalization", eps, w: new Float32Array(run).fill(1) } as const;
    setValue(lowering, out, normRuns(lowering, valueOf(lowering, x), { run, dim: x.dim }, norm));
  },
  /** x / sqrt(Σ x² + eps) = x / sqrt(mean + eps / run) / sqrt(run) */
  l2Norm({ out, x, run, eps }, lowering) {
    const w = new Float32Array(run).fill(1 / Math.sqrt(run));
    const norm = { op: "SimplifiedLayerNormalization", eps: eps / run, w } as const;
    setValue(lowering, out, normRuns(lowering, valueOf(lowering, x), { run, dim: x.dim }, norm));
  },
  layerNorm({ out, x, w, b, eps }, lowering) {
    const bias = (weight: Weight | undefined): Float32Array | undefined => weight && vectorOf(lowering, weight);
    const norm = { op: "LayerNormalization", eps, w: vectorOf(lowering, w), b: bias(b) } as const;
    setValue(lowering, out, normRuns(lowering, valueOf(lowering, x), { run: w.inDim, dim: x.dim }, norm));
  },
  bareLayerNorm({ out, x, eps }, lowering) {
    const norm = { op: "LayerNormalization", eps, w: new Float32Array(x.dim).fill(1) } as const;
    setValue(lowering, out, normRuns(lowering, valueOf(lowering, x), { run: x.dim, dim: x.dim }, norm));
  },
};

/** Norms, elementwise steps and copies → dispatches. */
import { AppError } from "../../src/base/index.ts";
import type { Buf, Ops, Weight } from "../../src/engine/program/step.ts";
import type { Activation, Dispatch, Operand, Params } from "./dispatch.ts";
import {
  ACTIVATIONS,
  batch,
  clampToFinite,
  grid,
  NO_ACTIVATION,
  read,
  update,
  valueOf,
  vector,
  write,
  type Context,
  type StepDispatch,
} from "./lowering.ts";
import { add } from "./lower-matmul.ts";

type PartOp =
  | "rmsNorm"
  | "bareRmsNorm"
  | "l2Norm"
  | "layerNorm"
  | "bareLayerNorm"
  | "multiply"
  | "activate"
  | "multiplyVector"
  | "matchLength"
  | "keepLargest"
  | "clamp"
  | "streamWeights"
  | "mixParts"
  | "slice"
  | "join"
  | "add"
  | "addVector"
  | "positionScale"
  | "softCap"
  | "scale";

/** Their matrix is in workgroup memory. */
const STREAMS_MAX = 32;

/** A kernel that changes each value of a buffer separately. */
export function inPlace(
  kernel: Dispatch["kernel"],
  { x, others = [], params }: { x: Activation; others?: readonly Operand[]; params: Params },
): StepDispatch[] {
  return [{ kernel, operands: [update(x), ...others], params: { dim: x.buf.dim, ...params }, grid: grid(x) }];
}

/** A kernel that changes a buffer's rows in place, one workgroup per row. */
function byRow(
  kernel: Dispatch["kernel"],
  { x, others = [], params }: { x: Activation; others?: readonly Operand[]; params: Params },
): StepDispatch[] {
  const lowered = { kernel, operands: [update(x), ...others], params: { dim: x.buf.dim, ...params } };
  return [{ ...lowered, grid: { ...grid(x), x: 1 } }];
}

/** Runs of `run` values, each divided by its length. @param sum divides the squares by 1, not by their number */
function rmsNorm(
  { out, x, w, run, eps, sum = false }: { out: Buf; x: Buf; w?: Weight; run: number; eps: number; sum?: boolean },
  context: Context,
): StepDispatch[] {
  const input = valueOf(x, context);
  const shape = { dim: x.dim, len: run, weights: w?.outDim ?? 0, divisor: sum ? 1 : run };
  return [
    {
      kernel: "rms_norm",
      operands: [read(input), vector(w), vector(undefined), write(out, input, context)],
      params: { ...shape, eps, hasResidual: 0, scale: 1 },
      grid: { ...grid(input), x: x.dim / run },
    },
  ];
}

function layerNorm(
  { out, x, w, b, run, eps }: { out: Buf; x: Buf; w?: Weight; b?: Weight | undefined; run: number; eps: number },
  context: Context,
): StepDispatch[] {
  const input = valueOf(x, context);
  return [
    {
      kernel: "layer_norm",
      operands: [read(input), vector(w), vector(b), write(out, input, context)],
      params: { dim: x.dim, len: run, weights: w?.outDim ?? 0, hasBias: b ? 1 : 0, eps },
      grid: { ...grid(input), x: x.dim / run },
    },
  ];
}

export const partOps: Pick<Ops<StepDispatch[], Context>, PartOp> = {
  rmsNorm: (step, context) => rmsNorm({ ...step, run: step.w.inDim }, context),
  bareRmsNorm: (step, context) => rmsNorm(step, context),
  l2Norm: (step, context) => rmsNorm({ ...step, sum: true }, context),
  layerNorm: (step, context) => layerNorm({ ...step, run: step.w.inDim }, context),
  bareLayerNorm: (step, context) => layerNorm({ ...step, run: step.x.dim }, context),

  multiply({ out, a, b, act }, context) {
    const [left, right] = [valueOf(a, context), valueOf(b, context)];
    const params = { dim: a.dim, narrow: b.dim, kind: act ? ACTIVATIONS[act] : NO_ACTIVATION };
    const operands = [read(left), read(right), write(out, left, context)];
    return [{ kernel: "multiply", operands, params, grid: grid(left) }];
  },

  activate({ x, act }, context) {
    return inPlace("activate", { x: valueOf(x, context), params: { kind: ACTIVATIONS[act] } });
  },

  multiplyVector({ x, w, divide = false }, context) {
    const params = { len: w.inDim, divide: divide ? 1 : 0 };
    return inPlace("multiply_vector", { x: valueOf(x, context), others: [vector(w)], params });
  },

  matchLength({ x, like }, context) {
    const others = [read(valueOf(like, context))];
    return byRow("match_length", { x: valueOf(x, context), others, params: { otherDim: like.dim } });
  },

  keepLargest({ x, factor }, context) {
    return byRow("keep_largest", { x: valueOf(x, context), params: { factor } });
  },

  clamp({ x, min, max }, context) {
    return inPlace("clamp", {
      x: valueOf(x, context),
      params: { least: clampToFinite(min), most: clampToFinite(max) },
    });
  },

  streamWeights({ x, scale, base, streams, eps, iterations }, context) {
    if (streams > STREAMS_MAX)
      throw new AppError("unsupported", `${streams} streams: the GPU kernels take at most ${STREAMS_MAX}`);
    const others: Operand[] = [{ kind: "vectors", weights: [scale, base] }];
    const params = { streams, base: scale.inDim * scale.outDim, iterations, eps };
    return byRow("stream_weights", { x: valueOf(x, context), others, params });
  },

  mixParts({ out, x, weights, at, parts }, context) {
    const input = valueOf(x, context);
    const length = x.dim / parts;
    const y = write(out, input, context);
    const operands = [read(input), read(valueOf(weights, context)), y];
    const params = { length, parts, outs: out.dim / length, stride: weights.dim, first: at };
    return [{ kernel: "mix_parts", operands, params, grid: grid(y.value) }];
  },

  slice({ out, x, heads, at }, context) {
    const input = valueOf(x, context);
    const params = { dim: out.dim, length: out.dim / heads, part: x.dim / heads, first: at };
    const y = write(out, input, context);
    return [{ kernel: "slice", operands: [read(input), y], params, grid: grid(y.value) }];
  },

  join({ out, a, b, heads }, context) {
    const [left, right] = [valueOf(a, context), valueOf(b, context)];
    const y = write(out, left, context);
    const params = { dim: out.dim, first: a.dim / heads, second: b.dim / heads };
    return [{ kernel: "join", operands: [read(left), read(right), y], params, grid: grid(y.value) }];
  },

  add({ out, a, b, scale }, context) {
    return [add(valueOf(a, context), valueOf(b, context), { out, scale }, context)];
  },

  positionScale({ x, coef, floorScale, offset }, context) {
    return inPlace("position_scale", {
      x: valueOf(x, context),
      others: [batch],
      params: { coef, floorScale, offset },
    });
  },

  addVector({ x, w }, context) {
    return inPlace("add_vector", { x: valueOf(x, context), others: [vector(w)], params: {} });
  },

  softCap({ x, cap }, context) {
    return inPlace("soft_cap", { x: valueOf(x, context), params: { cap } });
  },

  scale({ x, by }, context) {
    return inPlace("scale", { x: valueOf(x, context), params: { by } });
  },
};

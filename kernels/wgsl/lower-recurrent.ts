/** Convolutions and recurrences → dispatches. Each keeps a state per slot, which a run from position 0 ignores. */
import { AppError } from "../../src/base/index.ts";
import type { Ops, Step, Weight } from "../../src/engine/program/step.ts";
import type { Dispatch, Operand, Params } from "./dispatch.ts";
import {
  ACTIVATIONS,
  batch,
  grid,
  read,
  uniformBatch,
  valueOf,
  WG,
  write,
  type Context,
  type StepDispatch,
} from "./lowering.ts";

/** Values of a state's row in the registers of a thread. */
const LANE_VALUES = 16;

type RecurrentOp = "causalConv" | "centeredConv" | "previousRow" | "compress" | "deltaRule" | "wkv" | "selectiveScan";
type Conv = Extract<Step, { op: "causalConv" | "centeredConv" }>;

export const recurrentOps: Pick<Ops<StepDispatch[], Context>, RecurrentOp> = {
  causalConv: (step, context) => [conv("causal_conv", step, context)],
  centeredConv: (step, context) => [conv("centered_conv", step, context)],

  previousRow(step, context) {
    const input = valueOf(step.x, context);
    const operands = [read(input), batch, stateOf(step), write(step.out, input, context)];
    return [{ kernel: "previous_row", operands, params: { dim: step.x.dim }, grid: grid(input) }];
  },

  compress(step, context) {
    const { out, x, gate, bias, ratio, overlap } = step;
    const inputs = [x, gate].map((buf) => read(valueOf(buf, context)));
    const y = write(out, valueOf(x, context), context);
    return [
      {
        kernel: "compress",
        operands: [...inputs, vectors(bias), batch, stateOf(step), y],
        params: { dim: out.dim, width: x.dim, ratio, kept: (overlap ? 2 : 1) * ratio - 1 },
        grid: grid(y.value),
      },
    ];
  },

  deltaRule(step, context) {
    const { out, a, dt, nHeads, nKeyHeads, headDim, heads, scale, bound } = step;
    const values = valueOf(step.v, context);
    const inputs = [step.q, step.k, step.v, step.alpha, step.beta].map((buf) => read(valueOf(buf, context)));
    const lanes = lanesOf(step.op, headDim);
    return [
      {
        kernel: "delta_rule",
        operands: [...inputs, vectors(a, dt), uniformBatch, stateOf(step), write(out, values, context)],
        params: {
          heads: nHeads,
          keyHeads: nKeyHeads,
          width: headDim,
          lanes,
          alphas: step.alpha.dim / nHeads,
          repeat: heads === "repeat" ? 1 : 0,
          scale,
          bounded: bound === undefined ? 0 : 1,
          bound: bound ?? 0,
        },
        grid: sequences(nHeads * headDim, lanes),
      },
    ];
  },

  wkv(step, context) {
    const { out, r, w, k, v, a = r, b = r, nHeads, nKeyHeads, headDim, bound } = step;
    const values = valueOf(r, context);
    const inputs = [r, w, k, v, a, b].map((buf) => read(valueOf(buf, context)));
    const lanes = lanesOf(step.op, headDim);
    return [
      {
        kernel: "wkv",
        operands: [...inputs, uniformBatch, stateOf(step), write(out, values, context)],
        params: {
          heads: nHeads,
          keyHeads: nKeyHeads,
          width: headDim,
          lanes,
          removes: step.a ? 1 : 0,
          early: step.early ? 1 : 0,
          complement: step.complement ? 1 : 0,
          bounded: bound === undefined ? 0 : 1,
          bound: bound ?? 0,
        },
        grid: sequences(nHeads * headDim, lanes),
      },
    ];
  },

  selectiveScan(step, context) {
    const { out, dtB, d, a, nHeads, headDim, stateDim, nGroups } = step;
    const values = valueOf(step.x, context);
    const inputs = [step.x, step.dt, step.b, step.c].map((buf) => read(valueOf(buf, context)));
    const lanes = lanesOf(step.op, stateDim);
    const decays = (a.inDim * a.outDim) / nHeads;
    return [
      {
        kernel: "selective_scan",
        operands: [...inputs, vectors(dtB, d, a), batch, stateOf(step), write(out, values, context)],
        params: { heads: nHeads, headDim, width: stateDim, lanes, groups: nGroups, decays },
        grid: sequences(nHeads * headDim, lanes),
      },
    ];
  },
};

const vectors = (...weights: Weight[]): Operand => ({ kind: "vectors", weights });
const stateOf = (of: Step): Operand => ({ kind: "state", of });

function conv(kernel: "causal_conv" | "centered_conv", step: Conv, context: Context): StepDispatch {
  const { x, out, w, b, act } = step;
  const input = valueOf(x, context);
  const state = step.op === "causalConv" ? [stateOf(step)] : [];
  const params: Params = {
    channels: x.dim,
    taps: w.inDim,
    hasBias: b ? 1 : 0,
    acts: act ? 1 : 0,
    kind: act ? ACTIVATIONS[act] : 0,
  };
  const operands = [read(input), vectors(w, ...(b ? [b] : [])), batch, ...state, write(out, input, context)];
  return { kernel, operands, params, grid: grid(input) };
}

/** Threads that share a state's row of `width` values. */
function lanesOf(op: string, width: number): number {
  let lanes = 1;
  while (lanes * LANE_VALUES < width) lanes *= 2;
  if (lanes <= WG) return lanes;
  const most = WG * LANE_VALUES;
  throw new AppError("unsupported", `${op}: states of ${width} values a row: the GPU kernels take at most ${most}`);
}

/** Workgroups for the rows of a state, for each sequence of a run. */
const sequences = (rows: number, lanes: number): Dispatch["grid"] => {
  return { x: Math.ceil((rows * lanes) / WG), rows: "sequences", times: 1, rowsEach: 1 };
};

/**
 * A mixture of experts → dispatches. For few rows: the router, the choice with gate and up of the chosen experts, and
 * their down with the sum over them. For many, each product reads an expert's weights once for all rows that chose it.
 */
import { rowBytesOf } from "../../src/engine/formats/quant/blocks.ts";
import { AppError } from "../../src/base/index.ts";
import { plainGating } from "../gating.ts";
import type { Buf, Step, Weight } from "../../src/engine/program/step.ts";
import type { Activation, Operand, Params, Piece } from "./dispatch.ts";
import {
  ACTIVATIONS,
  again,
  batch,
  gate,
  grid,
  NONE,
  read,
  valueOf,
  WG,
  write,
  type Context,
  type StepDispatch,
} from "./lowering.ts";
import { lowRank, matmul } from "./lower-matmul.ts";

/** Maximum number of experts: their logits are in workgroup memory. */
const EXPERTS_MAX = 512;
/** Choices per workgroup of moe_matmul, see moe_group. */
const TILE_ROWS = 32;

type Moe = ReturnType<typeof plainGating<Extract<Step, { op: "moe" }>>>;
type Written = Operand & { value: Activation };

/** The inputs of the choice of experts. */
interface Router {
  readonly input: Activation;
  readonly logits: Activation;
  readonly nExperts: number;
}

export function lowerMoe(given: Extract<Step, { op: "moe" }>, context: Context): StepDispatch[] {
  const step = plainGating(given);
  const nExperts = step.router.outDim;
  if (nExperts > EXPERTS_MAX)
    throw new AppError("unsupported", `${nExperts} experts: the GPU kernels take at most ${EXPERTS_MAX}`);
  const input = valueOf(step.x, context);
  const buf = { name: "moe.router", dim: nExperts };
  const routed = matmul({ out: buf, x: input, w: step.router }, context);
  const router: Router = { input, logits: valueOf(buf, context), nExperts };
  const experts = !context.many && areFusible(step, context) ? fused : apart;
  return [...routed, ...experts(step, router, context)];
}

/**
 * Returns whether gate and up are divided alike, so that a piece of each holds the same experts, and no weight has
 * low-rank changes.
 */
function areFusible({ gate, up, down }: Moe, { piecesOf }: Context): boolean {
  if ([gate, up, down].some(({ lowRank: changes }) => changes)) return false;
  const cuts = (w: Weight): string =>
    piecesOf(w)
      .map((piece) => Object.values(expertsOf(piece, w)).join())
      .join(" ");
  return cuts(gate) === cuts(up);
}

/** The experts of a piece. */
const expertsOf = ({ first, count }: Piece, { tensorRows }: Weight) => ({
  first: first / tensorRows,
  count: count / tensorRows,
});

const matrixOf = ({ name }: Weight, { index }: Piece): Operand => ({ kind: "matrix", tensor: name, piece: index });

/** The choice, gate and up at once, then down with the sum. */
function fused(step: Moe, { input, logits, nExperts }: Router, context: Context): StepDispatch[] {
  const { gate, up, down, nUsed } = step;
  const choices = write({ name: "moe.choices", dim: 2 * nUsed }, input, context);
  const inner = write({ name: "moe.up", dim: up.outDim }, input, context, nUsed);
  const shared = write({ name: "moe.shared", dim: 1 }, input, context);
  const sum = write(step.out, input, context);
  const ones = new Float32Array(nExperts).fill(1);
  const factors = gate.scale || up.scale ? [gate.scale ?? ones, up.scale ?? ones] : [];
  const upPieces = context.piecesOf(up);
  return [
    ...context.piecesOf(gate).map((piece, i): StepDispatch => {
      const [w, w2] = [matrixOf(gate, piece), matrixOf(up, upPieces[i]!)]; // divided alike
      const norm: Operand = { kind: "vectors", weights: factors };
      const outputs = [again(inner, i), again(shared, i), again(choices, i)];
      const noMlp = { sharedCount: 0, first3: 0, rowBytes3: 0, first4: 0, rowBytes4: 0 };
      return {
        kernel: "moe_gated",
        quants: [gate, up].map(({ quant }) => quant.name),
        operands: [read(input), w, w2, w, w2, read(logits), norm, ...outputs],
        params: {
          ...expertParams(gate, piece),
          count: gate.outDim,
          expertRowsUp: up.tensorRows,
          rowStartUp: up.rowStart,
          rowBytesUp: rowBytesOf(up),
          used: nUsed,
          kind: ACTIVATIONS[step.act],
          allExperts: nExperts,
          normalize: step.normalize ? 1 : 0,
          scale: step.scale,
          hasNorm: 0,
          eps: 0,
          hasFactors: factors.length > 0 ? 1 : 0,
          ...noMlp,
        },
        grid: { x: Math.ceil(gate.outDim / context.tuning.columns), rows: input.rows, times: nUsed, rowsEach: 1 },
      };
    }),
    ...context.piecesOf(down).map((piece, i): StepDispatch => {
      const constant: Operand = { kind: "constant", values: down.scale };
      const base = i === 0 ? 0 : 2; // zero, or the experts of earlier pieces
      return {
        kernel: "moe_down",
        quants: [down.quant.name],
        operands: [read(inner.value), matrixOf(down, piece), read(choices.value), NONE, again(sum, i), constant],
        params: {
          ...expertParams(down, piece),
          outDim: down.outDim,
          used: nUsed,
          base,
          scale: 1,
          hasFactors: down.scale ? 1 : 0,
        },
        grid: { x: Math.ceil(down.outDim / context.tuning.columns), rows: input.rows, times: 1, rowsEach: 1 },
      };
    }),
  ];
}

/** Each product separately. */
function apart(step: Moe, { input, logits, nExperts }: Router, context: Context): StepDispatch[] {
  const { out, nUsed } = step;
  const ids = write({ name: "moe.ids", dim: nUsed }, input, context);
  const shares = write({ name: "moe.shares", dim: nUsed }, input, context);
  const groups = context.many ? group({ input, ids, nExperts }, nUsed, context) : undefined;
  const inner = (name: string, dim: number): Written => write({ name, dim }, input, context, nUsed);
  const multiply = (y: Written, x: Activation, w: Weight): StepDispatch[] =>
    expertMatmul({ y, x, w, ids: ids.value, groups }, context);
  const [gated, up] = [inner("moe.gate", step.gate.outDim), inner("moe.up", step.up.outDim)];
  const down = inner("moe.down", step.down.outDim);
  return [
    {
      kernel: "moe_route",
      operands: [read(logits), ids, shares],
      params: { experts: nExperts, used: nUsed, normalize: step.normalize ? 1 : 0, scale: step.scale },
      grid: { x: 1, rows: input.rows, times: 1, rowsEach: 1 },
    },
    ...(groups ? [groups.lowered] : []),
    ...multiply(gated, input, step.gate),
    ...multiply(up, input, step.up),
    gate(gated.value, up.value, step.act),
    ...multiply(down, up.value, step.down),
    {
      kernel: "moe_sum",
      operands: [read(down.value), read(shares.value), write(out, input, context)],
      params: { dim: out.dim, used: nUsed },
      grid: { ...grid(input), x: Math.ceil(out.dim / WG) },
    },
  ];
}

/** The choices of a run in the order of their experts. */
interface Groups {
  readonly lowered: StepDispatch;
  readonly order: Activation;
  readonly tiles: Activation;
  readonly nExperts: number;
}

function group(
  { input, ids, nExperts }: { input: Activation; ids: Written; nExperts: number },
  nUsed: number,
  context: Context,
): Groups {
  const order = write({ name: "moe.order", dim: nUsed }, input, context);
  // Every tile has at least one choice, so there is room for one more, which holds their number.
  const tiles = write({ name: "moe.tiles", dim: 4 * nUsed }, input, context);
  const lowered: StepDispatch = {
    kernel: "moe_group",
    operands: [read(ids.value), order, tiles, batch],
    params: { experts: nExperts, used: nUsed, wanted: input.rows === "wanted" ? 1 : 0 },
    grid: { x: 1, rows: input.rows, times: 1, rowsEach: Number.MAX_SAFE_INTEGER },
  };
  return { lowered, order: order.value, tiles: tiles.value, nExperts };
}

/** Parameters that all kernels with one matrix per expert share. */
function expertParams(w: Weight, piece: Piece): Params {
  const { first, count } = expertsOf(piece, w);
  return {
    inDim: w.inDim,
    firstExpert: first,
    experts: count,
    expertRows: w.tensorRows,
    rowStart: w.rowStart,
    rowBytes: rowBytesOf(w),
  };
}

/** y[i] = W[ids[i]] · x[i], where every row of x has `nUsed` choices, or is itself one. */
function expertMatmul(
  parts: { y: Written; x: Activation; w: Weight; ids: Activation; groups: Groups | undefined },
  context: Context,
): StepDispatch[] {
  const { y, x, w, ids, groups } = parts;
  const times = y.value.times;
  const lowered = context.piecesOf(w).map((piece, i): StepDispatch => ({
    kernel: groups ? "moe_matmul" : "moe_linear",
    quants: [w.quant.name],
    operands: [
      read(x),
      matrixOf(w, piece),
      ...(groups ? [read(groups.order), read(groups.tiles)] : [read(ids)]),
      { kind: "constant", values: w.scale },
      again(y, i),
    ],
    params: {
      ...expertParams(w, piece),
      ...(groups ? { count: w.outDim } : { outDim: w.outDim }),
      xDiv: times / x.times,
      hasFactors: w.scale ? 1 : 0,
    },
    grid: groups
      ? {
          x: Math.ceil(w.outDim / context.tuning.tileColumns),
          rows: x.rows,
          times,
          rowsEach: TILE_ROWS,
          more: groups.nExperts,
        }
      : { x: Math.ceil(w.outDim / context.tuning.columns), rows: x.rows, times, rowsEach: 1 },
  }));
  const multiply = (part: Weight, from: Activation, to: Buf): StepDispatch[] =>
    expertMatmul({ y: write(to, y.value, context), x: from, w: part, ids, groups }, context);
  return [...lowered, ...lowRank({ y: y.value, x, w, multiply }, context)];
}

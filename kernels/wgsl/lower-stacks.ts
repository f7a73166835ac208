/** Stacks of matrices, of which each row has chosen some: experts, and the changes of adapters. */
import { rowBytesOf } from "../../src/engine/formats/quant/blocks.ts";
import { AppError } from "../../src/base/index.ts";
import type { Weight } from "../../src/engine/program/step.ts";
import { usedOf } from "./chosen.ts";
import type { Activation, Operand, Params, Piece } from "./dispatch.ts";
import { again, NONE, read, update, vector, write, type Context, type StepDispatch } from "./lowering.ts";

type Written = Operand & { value: Activation };

/** The matrices of a piece. */
export const expertsOf = ({ first, count }: Piece, { tensorRows }: Weight) => ({
  first: first / tensorRows,
  count: count / tensorRows,
});

export const matrixOf = ({ name }: Weight, { index }: Piece): Operand => ({
  kind: "matrix",
  tensor: name,
  piece: index,
});

/** Parameters that all kernels with one matrix per expert share. */
export function expertParams(w: Weight, piece: Piece): Params {
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

interface StackLinear {
  readonly y: Written;
  readonly x: Activation;
  readonly w: Weight;
  readonly b?: Weight | undefined;
  /** `NONE`: row i uses matrix i modulo their number. */
  readonly choices: Operand;
}

/** y[i] = W[e] · x + b[e] for each choice i of a matrix e. A row of x serves `times` choices. */
export const stackLinear = ({ y, x, w, b, choices }: StackLinear, context: Context): StepDispatch[] =>
  context.piecesOf(w).map((piece, i) => ({
    kernel: "moe_linear",
    quants: [w.quant.name],
    operands: [read(x), matrixOf(w, piece), choices, { kind: "constant", values: w.scale }, again(y, i), vector(b)],
    params: {
      ...expertParams(w, piece),
      outDim: w.outDim,
      cyclic: choices === NONE ? w.experts : 0,
      xDiv: y.value.times / x.times,
      hasFactors: w.scale ? 1 : 0,
      hasBias: b ? 1 : 0,
    },
    grid: { x: Math.ceil(w.outDim / context.tuning.columns), rows: x.rows, times: y.value.times, rowsEach: 1 },
  }));

interface StackSum extends Omit<StackLinear, "y"> {
  /** The sum; to be updated, or first written. */
  readonly y: Written;
  readonly used: number;
  readonly weighs: boolean;
}

/** y = Σ share · (W[e] · x + b[e]) over a row's choices, or y += that. */
export const stackSum = ({ y, x, w, b, choices, used, weighs }: StackSum, context: Context): StepDispatch[] =>
  context.piecesOf(w).map((piece, i) => ({
    kernel: "moe_down",
    quants: [w.quant.name],
    operands: [
      read(x),
      matrixOf(w, piece),
      choices,
      NONE,
      again(y, i),
      { kind: "constant", values: w.scale },
      vector(b),
    ],
    params: {
      ...expertParams(w, piece),
      outDim: w.outDim,
      used,
      base: i > 0 || (y.kind === "activation" && y.access === "update") ? 2 : 0,
      scale: 1,
      hasFactors: w.scale ? 1 : 0,
      hasBias: b ? 1 : 0,
      weighs: weighs ? 1 : 0,
    },
    grid: { x: Math.ceil(w.outDim / context.tuning.columns), rows: y.value.rows, times: 1, rowsEach: 1 },
  }));

/**
 * y += Σ scale · b · (a · x) for the adapters that each row has chosen, by the kernels of few rows for any number of
 * rows: each has matrices of its own.
 */
export function changeChosen(
  { y, x, w }: { y: Activation; x: Activation; w: Weight },
  context: Context,
): StepDispatch[] {
  if (!context.adapts) return [];
  return (w.offered ?? []).flatMap(({ members, a, b }) => {
    for (const half of [a, b]) checkWhole(half, context);
    const choices: Operand = { kind: "chosen", members, rows: x.rows };
    const used = usedOf(members);
    const inner = write({ name: "offered.inner", dim: a.outDim }, x, context, used);
    return [
      ...stackLinear({ y: inner, x, w: a, choices }, context),
      ...stackSum({ y: { ...update(y), value: y }, x: inner.value, w: b, choices, used, weighs: true }, context),
    ];
  });
}

function checkWhole(half: Weight, { piecesOf }: Context): void {
  if (piecesOf(half).every((piece) => Number.isInteger(expertsOf(piece, half).count))) return;
  throw new AppError("unsupported", `tensor '${half.name}': an adapter's matrix is larger than the GPU binds at once`);
}

/** Matrices of any size → dispatches: products with whole matrices, their low-rank changes, and sums. */
import { rowBytesOf } from "../../src/engine/formats/quant/blocks.ts";
import { rowsAtOnce } from "../../src/base/index.ts";
import type { Buf, Weight } from "../../src/engine/program/step.ts";
import type { Activation, Operand } from "./dispatch.ts";
import { readsHalves } from "./tiles.ts";
import { changeChosen } from "./lower-stacks.ts";
import { again, batch, grid, NONE, read, vector, write, type Context, type StepDispatch } from "./lowering.ts";

/** The parts of a matrix, each with its first row inside the piece and inside the matrix. */
export function partsOf(weight: Weight, context: Context) {
  return context.piecesOf(weight).flatMap((piece) => {
    const first = Math.max(weight.rowStart, piece.first);
    const end = Math.min(weight.rowStart + weight.outDim, piece.first + piece.count);
    return end > first
      ? [{ piece, first: first - piece.first, column: first - weight.rowStart, count: end - first }]
      : [];
  });
}

/** y = W · x + b, with the low-rank changes of W, and the ones that rows have chosen. */
export function matmul(
  { out, x, w, b }: { out: Buf; x: Activation; w: Weight; b?: Weight | undefined },
  context: Context,
): StepDispatch[] {
  const y = write(out, x, context);
  const { isGemm, tuning } = context;
  const [rowsEach, columns] = isGemm ? [tuning.tileRows, tuning.tileColumns] : [rowsAtOnce(tuning), tuning.columns];
  const given = factorOf(x, w, context);
  const lowered = partsOf(w, context).map(({ piece, first, column, count }, i): StepDispatch => {
    const matrix: Operand = { kind: "matrix", tensor: w.name, piece: piece.index };
    return {
      kernel: isGemm ? "matmul" : "linear",
      quants: [w.quant.name],
      operands: [
        read(given.value),
        matrix,
        vector(b),
        vector(undefined),
        again(y, i),
        batch,
        ...(isGemm ? [] : [NONE]),
      ],
      params: {
        inDim: w.inDim,
        count,
        first,
        rowBytes: rowBytesOf(w),
        yFirst: column,
        yDim: out.dim,
        hasBias: b ? 1 : 0,
        factor: w.scale?.[0] ?? 1,
        hasResidual: 0,
        scale: 1,
        wanted: x.rows === "wanted" ? 1 : 0,
        ...(isGemm ? {} : { hasNorm: 0, eps: 0 }),
      },
      grid: { x: Math.ceil(count / columns), rows: x.rows, times: x.times, rowsEach },
    };
  });
  const multiply = (part: Weight, from: Activation, to: Buf): StepDispatch[] =>
    matmul({ out: to, x: from, w: part }, context);
  const changes = { y: y.value, x, w };
  return [...given.made, ...lowered, ...lowRank({ ...changes, multiply }, context), ...changeChosen(changes, context)];
}

/** x in the form that the product's kernel reads, and the dispatches that make it. */
export function factorOf(x: Activation, w: Weight, context: Context): { value: Activation; made: StepDispatch[] } {
  if (!context.isGemm || !readsHalves(context.tuning, w.quant.name, context.matrix)) return { value: x, made: [] };
  const { name, dim } = x.buf;
  const words = 16 * Math.ceil(dim / 32) + 4; // see to_halves.wgsl
  const halves = write({ name: `${name}.halves${dim}`, dim: words }, x, context);
  const made = {
    kernel: "to_halves",
    operands: [read(x), halves],
    params: { dim },
    grid: { ...grid(x), x: 1 },
  } as const;
  return { value: halves.value, made: [made] };
}

/** y += b · (a · x) for each change of a matrix. */
export function lowRank(
  parts: { y: Activation; x: Activation; w: Weight; multiply(w: Weight, from: Activation, to: Buf): StepDispatch[] },
  context: Context,
): StepDispatch[] {
  const { y, x, w, multiply } = parts;
  return (w.lowRank ?? []).flatMap(({ a, b }) => {
    const [inner, change] = [
      { name: "lowRank.inner", dim: a.outDim },
      { name: "lowRank.change", dim: b.outDim },
    ];
    const narrow = multiply(a, x, inner);
    const wide = multiply(b, { ...y, buf: inner }, change);
    return [...narrow, ...wide, add(y, { ...y, buf: change }, { out: y.buf, scale: 1 }, context)];
  });
}

/** out = a + b · scale */
export function add(
  a: Activation,
  b: Activation,
  { out, scale }: { out: Buf; scale: number },
  context: Context,
): StepDispatch {
  const operands = [read(a), read(b), write(out, a, context)];
  return { kernel: "add", operands, params: { dim: out.dim, scale }, grid: grid(a) };
}

/** A mixture of experts → dispatches. */
import type { Buf, Step, Weight } from "../../src/backend/step.ts";
import type { Activation, Operand } from "./dispatch.ts";
import {
  again,
  COLUMNS,
  f32,
  gate,
  grid,
  read,
  rowBytesOf,
  valueOf,
  write,
  WG,
  type Context,
  type Draft,
} from "./draft.ts";
import { lowRank, matmul } from "./lower-matmul.ts";

export function lowerMoe(step: Step & { op: "moe" }, context: Context): Draft[] {
  const { out, x, router, act, nUsed } = step;
  const input = valueOf(x, context);
  const logits = { name: "moe.router", dim: router.outDim };
  const routed = matmul({ out: logits, x: input, w: router }, context);
  const ids = write({ name: "moe.ids", dim: nUsed }, input, context);
  const shares = write({ name: "moe.shares", dim: nUsed }, input, context);
  const inner = (name: string, dim: number) => write({ name, dim }, input, context, nUsed);
  const [gated, up] = [inner("moe.gate", step.gate.outDim), inner("moe.up", step.up.outDim)];
  const down = inner("moe.down", step.down.outDim);
  const experts = (y: typeof up, x: Activation, w: Weight) => expertMatmul({ y, x, w, ids: ids.value }, context);
  return [
    ...routed,
    {
      kernel: "moe_route",
      operands: [read(valueOf(logits, context)), ids, shares],
      params: [router.outDim, nUsed, step.normalize ? 1 : 0, f32(step.scale)],
      grid: { x: 1, rows: input.rows, times: 1, rowsEach: 1 },
    },
    ...experts(gated, input, step.gate),
    ...experts(up, input, step.up),
    gate(gated.value, up.value, act),
    ...experts(down, up.value, step.down),
    {
      kernel: "moe_sum",
      operands: [read(down.value), read(shares.value), write(out, input, context)],
      params: [out.dim, nUsed],
      grid: { ...grid(input), x: Math.ceil(out.dim / WG) },
    },
  ];
}

/** y[i] = W[ids[i]] · x[i], where every row of x has `nUsed` choices, or is itself one. */
function expertMatmul(
  { y, x, w, ids }: { y: Operand & { value: Activation }; x: Activation; w: Weight; ids: Activation },
  context: Context,
): Draft[] {
  const drafts = context.piecesOf(w).map((piece, i): Draft => ({
    kernel: "moe_linear",
    quants: [w.quant.name],
    operands: [
      read(x),
      { kind: "matrix", tensor: w.name, piece: piece.index },
      read(ids),
      { kind: "constant", values: w.scale },
      again(y, i),
    ],
    params: [
      w.inDim,
      w.outDim,
      piece.first / w.tensorRows,
      piece.count / w.tensorRows,
      w.tensorRows,
      w.rowStart,
      rowBytesOf(w),
      y.value.times / x.times,
      w.scale ? 1 : 0,
    ],
    grid: { x: Math.ceil(w.outDim / COLUMNS), rows: x.rows, times: y.value.times, rowsEach: 1 },
  }));
  const multiply = (part: Weight, from: Activation, to: Buf): Draft[] =>
    expertMatmul({ y: write(to, y.value, context), x: from, w: part, ids }, context);
  return [...drafts, ...lowRank({ y: y.value, x, w, multiply }, context)];
}

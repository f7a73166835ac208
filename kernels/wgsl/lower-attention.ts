/** Attention → dispatches: few rows over the KV cache in splits, many in tiles; and over the rows of a run. */
import { AppError } from "../../src/base/index.ts";
import type { Step } from "../../src/engine/program/step.ts";
import type { Operand, Params } from "./dispatch.ts";
import { batch, grid, read, update, valueOf, write, type Context, type StepDispatch } from "./lowering.ts";
import { splitParams, splitsOf } from "./splits.ts";

/** Heads per workgroup of `attention`, and rows per workgroup of `attention_tile`. */
const [HEADS, ROWS] = [4, 32];
/** Largest head of the kernels: queries are in workgroup memory, sums in registers. */
const HEAD_DIM_MAX = 256;

type Attention = Extract<Step, { op: "attention" }>;
type BidirectionalAttention = Extract<Step, { op: "bidirectionalAttention" }>;
/** Parameters of the scores. */
type Heads = Pick<Attention, "nHeads" | "nKvHeads" | "headDim" | "window" | "scale" | "softCap">;

export function lowerAttention(step: Attention, context: Context): StepDispatch[] {
  const { out, k, v, layer } = step;
  checkHeadDim(step.headDim);
  const cache = (part: "keys" | "values"): Operand => ({ kind: "cache", layer, part });
  const query = valueOf(step.q, context);
  const operands = [read(query), cache("keys"), cache("values"), batch, write(out, query, context)];
  const store: StepDispatch = {
    kernel: "store_kv",
    quants: [context.cacheType ?? "f32"],
    operands: [read(valueOf(k, context)), read(valueOf(v, context)), cache("keys"), cache("values"), batch],
    params: { dim: k.dim, ctxLen: context.ctxLen },
    grid: grid(valueOf(k, context)),
  };
  return [
    store,
    ...(context.many
      ? [{ ...tile(step, operands, context.ctxLen), quants: store.quants! }]
      : inSplits(step, operands, context)),
  ];
}

export function lowerBidirectionalAttention(step: BidirectionalAttention, context: Context): StepDispatch[] {
  checkHeadDim(step.headDim);
  const inputs = [step.q, step.k, step.v].map((buf) => read(valueOf(buf, context)));
  const operands = [...inputs, batch, write(step.out, valueOf(step.q, context), context)];
  return [tile({ ...step, nKvHeads: step.nHeads, window: 0, softCap: 0 }, operands, 0)];
}

function checkHeadDim(headDim: number): void {
  if (headDim > HEAD_DIM_MAX)
    throw new AppError("unsupported", `heads of ${headDim} values: the GPU kernels take at most ${HEAD_DIM_MAX}`);
}

const headParams = ({ nHeads, nKvHeads, headDim, window, scale, softCap }: Heads, ctxLen: number): Params => ({
  heads: nHeads,
  kvHeads: nKvHeads,
  headDim,
  ctxLen,
  window,
  scale,
  softCap,
});

/** Attention for many rows. @param ctxLen of the keys' cache; 0 if keys are rows of this run */
function tile(heads: Heads, operands: readonly Operand[], ctxLen: number): StepDispatch {
  const grid = { x: heads.nHeads, rows: "all", times: 1, rowsEach: ROWS } as const;
  return { kernel: "attention_tile", quants: ["f32"], operands, params: headParams(heads, ctxLen), grid };
}

/** Attention for few rows, and the dispatch that joins its splits. @param operands the last one is the result */
function inSplits(step: Attention, operands: readonly Operand[], context: Context): StepDispatch[] {
  const { out, nHeads, nKvHeads, headDim, window } = step;
  const seen = window > 0 ? Math.min(window, context.ctxLen) : context.ctxLen;
  const [y, splits] = [valueOf(out, context), splitsOf(seen)];
  const parts = write({ name: "attention.parts", dim: nHeads * splits * (headDim + 2) }, y, context);
  const attention: StepDispatch = {
    kernel: "attention",
    quants: [context.cacheType ?? "f32"],
    operands: [...operands, parts],
    params: { ...headParams(step, context.ctxLen), ...splitParams(seen) },
    grid: { ...grid(y), x: nKvHeads * Math.ceil(nHeads / nKvHeads / HEADS), splits },
  };
  if (splits === 1) return [attention];
  const reduce: StepDispatch = {
    kernel: "attention_reduce",
    operands: [read(parts.value), batch, update(y)],
    params: { heads: nHeads, headDim, window, ...splitParams(seen) },
    grid: { ...grid(y), x: nHeads, joins: true },
  };
  return [attention, reduce];
}

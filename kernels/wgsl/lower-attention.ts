/** Attention → dispatches: few rows over the KV cache in splits, many in tiles; and over the rows of a run. */
import { AppError, attendsByMatrix } from "../../src/base/index.ts";
import { alibiSlopes } from "../alibi.ts";
import type { Buf, DistanceBias, Step } from "../../src/engine/program/step.ts";
import type { Operand, Params, Vector } from "./dispatch.ts";
import {
  batch,
  grid,
  memoryBatch,
  NONE,
  read,
  update,
  valueOf,
  write,
  type Context,
  type StepDispatch,
} from "./lowering.ts";
import { isRotated, memoryType } from "./cache.ts";
import type { KernelName } from "./sources.ts";
import { splitParams, splitsOf } from "./splits.ts";

/** Heads per workgroup of `attention`; rows, and values of each, per workgroup of `attention_tile`. */
const [HEADS, ROWS, VALUES] = [4, 32, 256];
/** Lines per workgroup of `attention_matrix`, and its forms by their largest head. */
const LINES = 32;
const MATRIX_DIMS = [
  { dim: 64, kernel: "attention_matrix_64" },
  { dim: 128, kernel: "attention_matrix_128" },
  { dim: 256, kernel: "attention_matrix_256" },
] as const;
/** Largest head of the kernels for few rows: queries are in workgroup memory, sums in registers. */
const NARROW = { headDim: 256, valueDim: 256 };
const WIDE = { headDim: 640, valueDim: 512 };

type StepOf<Op> = Extract<Step, { op: Op }>;
type Attention = StepOf<"attention">;
type SharedAttention = StepOf<"sharedAttention">;
type Vectors = Extract<Operand, { kind: "vectors" }>;
/** Parameters of the scores. */
type Heads = Omit<SharedAttention, "op" | "layer" | "source"> &
  Pick<Attention, "chosen" | "chosenBlock"> & { readonly bias?: DistanceBias };

/** The place of keys and values. */
interface Kept {
  readonly operands: readonly [keys: Operand, values: Operand];
  /** Values of a position, and the index of the first one that is read in a head. */
  readonly valueRow: number;
  readonly valueSkip: number;
  /** Positions of a slot; 0 if keys are rows of this run. */
  readonly ctxLen: number;
  /** Set for keys and values of memories. */
  readonly ofMemory?: true;
}

type CacheOf = Extract<Operand, { kind: "cache" }>["of"];

const cache = (layer: number, part: "keys" | "values", of: CacheOf = "tokens"): Operand => {
  return { kind: "cache", layer, part, of };
};

/** Keys and values in the cache that `layer` fills. */
const keptIn = (layer: number, { nKvHeads, headDim, valueDim = headDim }: Heads, { ctxLen }: Context): Kept => ({
  operands: [cache(layer, "keys"), cache(layer, "values")],
  valueRow: nKvHeads * valueDim,
  valueSkip: 0,
  ctxLen,
});

export function lowerAttention(step: Attention, context: Context): StepDispatch[] {
  const { k, v, layer, nKvHeads } = step;
  return [
    store({ k, v }, { layer, heads: nKvHeads, skip: 0 }, context),
    ...attend(step, keptIn(layer, step, context), context),
  ];
}

export function lowerSharedAttention(step: SharedAttention, context: Context): StepDispatch[] {
  return attend(step, keptIn(step.source, step, context), context);
}

export function lowerLatentAttention(step: StepOf<"latentAttention">, context: Context): StepDispatch[] {
  const { k, layer, headDim, valueDim } = step;
  const keys = cache(layer, "keys");
  const kept: Kept = {
    operands: [keys, keys],
    valueRow: headDim,
    valueSkip: headDim - valueDim,
    ctxLen: context.ctxLen,
  };
  const heads = { ...step, nKvHeads: 1, window: 0, softCap: 0 };
  const place = { layer, heads: 1, skip: kept.valueSkip };
  return [store({ k, v: undefined }, place, context), ...attend(heads, kept, context)];
}

/** Attention to all rows of a memory; zeros for rows without one. */
export function lowerCrossAttention(step: StepOf<"crossAttention">, context: Context): StepDispatch[] {
  const { layer, nKvHeads, headDim, rows } = step;
  const own = { ...ofMemory(headDim, context), ctxLen: rows };
  const kept: Kept = {
    operands: [cache(layer, "keys", "memory"), cache(layer, "values", "memory")],
    valueRow: nKvHeads * headDim,
    valueSkip: 0,
    ctxLen: rows,
    ofMemory: true,
  };
  const attended = attend({ ...step, window: 0, softCap: 0, oneWay: true }, kept, own);
  return [...attended, forget(step.out, context)];
}

/** Keys and values of a memory's rows into its cache. */
export function lowerRemember(step: StepOf<"remember">, context: Context): StepDispatch[] {
  const { k, v, layer, nKvHeads: heads, headDim } = step;
  return [store({ k, v }, { layer, heads, skip: 0, of: "memory" }, ofMemory(headDim, context))];
}

/** Zeros for rows without a memory. */
export function forget(x: Buf, context: Context): StepDispatch {
  const value = valueOf(x, context);
  const operands = [update(value), memoryBatch];
  return { kernel: "keep_remembering", operands, params: { dim: x.dim }, grid: { ...grid(value), forgets: true } };
}

const ofMemory = (headDim: number, context: Context): Context => {
  return { ...context, cacheType: memoryType(context.cacheType ?? "f32", headDim) };
};

export function lowerBidirectionalAttention(step: StepOf<"bidirectionalAttention">, context: Context): StepDispatch[] {
  const { k, v, nHeads, nKvHeads = nHeads, headDim, window = 0 } = step;
  const [keys, values] = [k, v].map((buf) => read(valueOf(buf, context))) as [Operand, Operand];
  const kept: Kept = {
    operands: [keys, values],
    valueRow: nKvHeads * headDim,
    valueSkip: 0,
    ctxLen: 0,
  };
  return [tile({ ...step, nKvHeads, window, softCap: 0, oneWay: step.inSpans !== true }, kept, context)];
}

/** Attention to a window, and to entries, which are the values of the last positions of their blocks. */
export function lowerCompressedAttention(step: StepOf<"compressedAttention">, context: Context): StepDispatch[] {
  const { k, entries, layer, nHeads, headDim, ratio, chosen, window } = step;
  const heads = { ...step, nKvHeads: 1, softCap: 0 };
  const kept = keptIn(layer, heads, context);
  const query = valueOf(step.q, context);
  const { extras, params } = extrasOf(heads);
  const y = write(step.out, query, context);
  const parts = write({ name: "attention.parts", dim: 1 }, query, context);
  const count = chosen?.dim ?? Math.floor(context.ctxLen / ratio);
  const most = Math.min(window, context.ctxLen) + count;
  const choice = chosen ? read(valueOf(chosen, context)) : NONE;
  return [
    store({ k, v: entries }, { layer, heads: 1, skip: 0 }, context),
    {
      kernel: isNarrow(headDim, headDim) ? "attention_entries" : "attention_entries_wide",
      quants: [context.cacheType ?? "f32"],
      operands: [read(query), ...kept.operands, batch, extras, choice, y, parts],
      params: { ...headParams(heads, kept), ...params, ...splitParams(1), wholeLen: most, ratio, count },
      grid: { ...grid(query), x: Math.ceil(nHeads / HEADS), splits: 1 },
    },
  ];
}

/**
 * Stores the rows' keys and values in the cache.
 * @param v undefined: values are parts of keys
 */
export function store(
  { k, v }: { k: Buf; v: Buf | undefined },
  { layer, heads, skip, of }: { layer: number; heads: number; skip: number; of?: CacheOf },
  context: Context,
): StepDispatch {
  const [keys, values] = [read(valueOf(k, context)), read(valueOf(v ?? k, context))];
  return {
    kernel: "store_kv",
    quants: [context.cacheType ?? "f32"],
    operands: [keys, values, cache(layer, "keys", of), cache(layer, "values", of), batch],
    params: {
      heads,
      headDim: k.dim / heads,
      valueDim: (v?.dim ?? 0) / heads,
      valueSkip: skip,
      ctxLen: context.ctxLen,
    },
    grid: { ...grid(valueOf(k, context)), x: heads },
  };
}

function attend(heads: Heads, kept: Kept, context: Context): StepDispatch[] {
  if (!context.isGemm || heads.chosen) return inSplits(heads, kept, context);
  const { cacheType = "f32" } = context;
  if (!isRotated(cacheType)) return [tileOfCache(heads, kept, context)];
  const { q, out, nHeads, headDim, valueDim = headDim } = heads;
  const turned = { name: `${q.name}, rotated`, dim: q.dim };
  const sums = { name: `${out.name}, rotated`, dim: out.dim };
  const shape = { heads: nHeads, skip: kept.valueSkip };
  return [
    rotate({ x: q, out: turned }, { ...shape, dim: headDim }, context),
    tileOfCache({ ...heads, q: turned, out: sums }, kept, context),
    rotate({ x: sums, out }, { ...shape, dim: valueDim }, context),
  ];
}

/** Rotates queries before they meet rotated keys, or sums of rotated values back. */
export function rotate(
  { x, out }: { x: Buf; out: Buf },
  shape: { heads: number; dim: number; skip: number },
  context: Context,
): StepDispatch {
  const value = valueOf(x, context);
  return {
    kernel: "rotate_heads",
    operands: [read(value), write(out, value, context)],
    params: shape,
    grid: { ...grid(value), x: shape.heads },
  };
}

/** Attention for many rows over the cache. */
function tileOfCache(heads: Heads, kept: Kept, context: Context): StepDispatch {
  const tiled = { ...tile(heads, kept, context), quants: [context.cacheType ?? "f32"] };
  const kernel = heads.bias ? undefined : matrixKernel(heads, context);
  if (!kernel) return tiled;
  const { nHeads, nKvHeads } = heads;
  const grid = { ...tiled.grid, x: nKvHeads, times: nHeads / nKvHeads, rowsEach: LINES };
  return { ...tiled, kernel, grid };
}

/** The kernel with subgroup matrices for heads of a size, if tuning says so; undefined: they are too large. */
export function matrixKernel(
  { headDim, valueDim = headDim }: Pick<Heads, "headDim" | "valueDim">,
  { tuning, matrix }: Pick<Context, "tuning" | "matrix">,
): KernelName | undefined {
  if (!tuning.attention || !attendsByMatrix(matrix) || headDim % 4 !== 0 || valueDim % 4 !== 0) return undefined;
  return MATRIX_DIMS.find(({ dim }) => Math.max(headDim, valueDim) <= dim)?.kernel;
}

/** Sinks, slopes and biases in sequence, and where each begins: one more than the offset, or 0. */
function extrasOf({ sinks, alibi, bias, nHeads }: Heads): { extras: Vectors; params: Params; biases: Params } {
  const slopes = alibi === undefined ? [] : [Float32Array.from(alibiSlopes(nHeads, alibi))];
  const weights: Vector[] = [...(sinks ? [sinks] : []), ...slopes];
  const hasSlopes = slopes.length === 0 ? 0 : 1 + (sinks ? nHeads : 0);
  return {
    extras: { kind: "vectors", weights: bias ? [...weights, bias.values] : weights },
    params: { hasSinks: sinks ? 1 : 0, hasSlopes },
    biases: { hasBiases: bias ? 1 + nHeads * weights.length : 0, far: bias?.far ?? 0 },
  };
}

function headParams(heads: Heads, { valueRow, valueSkip, ctxLen }: Kept): Params {
  const { nHeads, nKvHeads, headDim, valueDim = headDim, window, chunked = false, scale, softCap } = heads;
  const shape = {
    heads: nHeads,
    kvHeads: nKvHeads,
    headDim,
    valueDim,
    valueRow,
    valueSkip,
    ctxLen,
  };
  return { ...shape, window, chunked: chunked ? 1 : 0, scale, softCap };
}

/** Attention for many rows. */
function tile(heads: Heads, kept: Kept, context: Context): StepDispatch {
  const { nHeads, headDim, valueDim = headDim } = heads;
  const query = valueOf(heads.q, context);
  const { extras, params, biases } = extrasOf(heads);
  return {
    kernel: "attention_tile",
    quants: ["f32"],
    operands: [read(query), ...kept.operands, batchOf(kept), extras, write(heads.out, query, context)],
    params: {
      ...headParams(heads, kept),
      spans: heads.oneWay ? 0 : 1,
      ...params,
      ...biases,
    },
    grid: { ...grid(query), x: nHeads * Math.ceil(valueDim / VALUES), rowsEach: ROWS, ...memoryGrid(kept) },
  };
}

/** The chosen blocks of positions: the operand, and the parameters of the kernel that reads it. */
function choiceOf({ chosen, chosenBlock = 1, nKvHeads, window }: Heads, context: Context) {
  if (!chosen) return undefined;
  if (window > 0) throw new AppError("unsupported", "the GPU kernels take no window of chosen positions");
  const params = { count: chosen.dim / nKvHeads, block: chosenBlock };
  const most = Math.min(context.ctxLen, params.count * params.block);
  return { operand: read(valueOf(chosen, context)), params, most };
}

/** Attention for few rows, and the dispatch that joins its splits; many rows, of chosen positions, have one split. */
function inSplits(heads: Heads, kept: Kept, context: Context): StepDispatch[] {
  const { nHeads, nKvHeads, headDim, valueDim = headDim, window, chunked = false } = heads;
  const query = valueOf(heads.q, context);
  const choice = choiceOf(heads, context);
  const y = write(heads.out, query, context);
  const seen = choice?.most ?? (window > 0 ? Math.min(window, context.ctxLen) : context.ctxLen);
  const splits = context.isGemm ? 1 : splitsOf(seen);
  const split = { ...splitParams(seen), splits, ...(context.isGemm && { wholeLen: seen }) };
  const partsDim = splits === 1 ? 1 : nHeads * splits * (valueDim + 2);
  const parts = write({ name: "attention.parts", dim: partsDim }, query, context);
  const { extras, params, biases } = extrasOf(heads);
  const limit = choice ? { window: choice.most } : {};
  const kernel = choice ? "attention_chosen" : "attention";
  const attention: StepDispatch = {
    kernel: isNarrow(headDim, valueDim) ? kernel : `${kernel}_wide`,
    quants: [context.cacheType ?? "f32"],
    operands: [read(query), ...kept.operands, batchOf(kept), extras, ...(choice ? [choice.operand] : []), y, parts],
    params: { ...headParams(heads, kept), ...limit, ...params, ...split, ...(choice ? choice.params : biases) },
    grid: { ...grid(query), x: nKvHeads * Math.ceil(nHeads / nKvHeads / HEADS), splits, ...memoryGrid(kept) },
  };
  if (splits === 1) return [attention];
  const reduce: StepDispatch = {
    kernel: "attention_reduce",
    operands: [read(parts.value), batchOf(kept), update(y.value)],
    params: { heads: nHeads, valueDim, window, chunked: chunked ? 1 : 0, ...limit, ...split },
    grid: { ...grid(query), x: nHeads, joins: true, ...memoryGrid(kept) },
  };
  return [attention, reduce];
}

const batchOf = ({ ofMemory: isOfMemory }: Kept): Operand => (isOfMemory ? memoryBatch : batch);
const memoryGrid = ({ ofMemory: isOfMemory }: Kept) => isOfMemory && { ofMemory: true };

/** Returns whether heads are of the usual size. Throws `unsupported` for heads that no kernel takes. */
function isNarrow(headDim: number, valueDim: number): boolean {
  const fits = (most: typeof WIDE): boolean => headDim <= most.headDim && valueDim <= most.valueDim;
  if (fits(WIDE)) return fits(NARROW);
  const most = `${WIDE.headDim} and ${WIDE.valueDim}`;
  throw new AppError("unsupported", `keys and values of ${headDim} and ${valueDim}: the GPU kernels take ${most}`);
}

/** Lowers attention steps to records: store keys and values, then the scores of every row. */
import { KV_TYPES, type RecordValues } from "../../../../kernels/simd/layout.ts";
import { AppError, assert } from "../../../base/index.ts";
import { alibiSlopes } from "../../../../kernels/alibi.ts";
import { ropeTable, sectionOf } from "../../program/rope.ts";
import type { Buf, DistanceBias, Ops, Step } from "../../program/step.ts";
import { allocateLayer, fillContext, isRotated, type KvLayer, type KvType } from "./kv.ts";
import { changed, type Lowering } from "./lowering.ts";
import type { Activation } from "./records.ts";
import type { Remembered } from "./remembered.ts";

/** Equals `HEAD_MAX` of ops/attend.h. */
const HEAD_DIM_MAX = 1024;
/** As in ops/attend-words.h: queries that share keys and values as 16-bit integers, and positions per block. */
const SWEEP = 512;
const QUERY_FLOATS = 16;
const SPAN = 128;
/** Positions whose scores one thread computes at a time. */
const SCORE_SPAN = 1024;
/** Positions before and after a window that lie in its tiles. */
const TILES = 32;
/** Key of the layer without a cache. */
const UNKEPT = -1;

type AttentionOp =
  | "rope"
  | "attention"
  | "sharedAttention"
  | "latentAttention"
  | "compressedAttention"
  | "choosePositions"
  | "bidirectionalAttention"
  | "crossAttention"
  | "remember"
  | "keepRemembering";

export const attentionOps: Pick<Ops<void, Lowering>, AttentionOp> = {
  rope({ x, heads, headDim, rope, at = 0 }, lowering) {
    const { list, memory, ropes, ctxLen, weights } = lowering;
    const table = ropes.get(rope) ?? ropeTable(rope, ctxLen);
    ropes.set(rope, table);
    const y = changed(list, x);
    const pairs = rope.rotaryDim / 2;
    const axes = Int32Array.from({ length: pairs }, (_, i) => sectionOf(i, rope.sections));
    lowering.scratchFloats = Math.max(lowering.scratchFloats, rope.rotaryDim);
    list.add("rope", y, {
      x: y.address,
      cos: memory.place(table.cos),
      sin: memory.place(table.sin),
      dim: x.dim,
      heads,
      headDim,
      at,
      rotaryDim: rope.rotaryDim,
      neox: rope.style === "neox" ? 1 : 0,
      axes: rope.sections ? weights.constant(axes) : 0,
      positions: ctxLen,
    });
  },

  attention(step, lowering) {
    const cache = cacheOf(step.layer, lowering);
    const { nKvHeads, valueDim = step.headDim } = step;
    const own = store(
      { k: step.k, v: { buf: step.v, offset: 0, stride: valueDim, dim: valueDim } },
      { cache, heads: nKvHeads, kept: 1 },
      lowering,
    );
    attend(step, { cache, kept: 1, ctxLen: lowering.kv.ctxLen, own }, lowering);
  },

  sharedAttention(step, lowering) {
    attend(step, { cache: cacheOf(step.source, lowering), kept: 1, ctxLen: lowering.kv.ctxLen }, lowering);
  },

  latentAttention(step, lowering) {
    const { headDim, valueDim, k } = step;
    const cache = cacheOf(step.layer, lowering);
    // Values are the last part of each key; a copy of them is stored in the layout of values.
    const v = { buf: k, offset: headDim - valueDim, stride: headDim, dim: valueDim };
    const own = store({ k, v }, { cache, heads: 1, kept: 1 }, lowering);
    const place = { cache, kept: 1, ctxLen: lowering.kv.ctxLen, own } as const;
    attend({ ...step, nKvHeads: 1, window: 0, softCap: 0 }, place, lowering);
  },

  compressedAttention(step, lowering) {
    const { headDim, k, entries, ratio } = step;
    const cache = cacheOf(step.layer, lowering);
    const v = { buf: entries, offset: 0, stride: headDim, dim: headDim };
    store({ k, v }, { cache, heads: 1, kept: 1, ratio }, lowering);
    attend({ ...step, nKvHeads: 1, softCap: 0 }, { cache, kept: 1, ctxLen: lowering.kv.ctxLen }, lowering);
  },

  choosePositions(step, lowering) {
    const { list, kv } = lowering;
    const { k, weights, heads, headDim, count, block, local } = step;
    const closed = step.closed ? 1 : 0;
    const cache = cacheOf(step.cache, lowering);
    store({ k, v: { buf: k, offset: 0, stride: 0, dim: 0 } }, { cache, heads: 1, kept: 1 }, lowering);
    const inDim = cache.headDim;
    const turned = { heads, stride: headDim, dim: headDim, filled: inDim, outDim: inDim };
    const q = isRotated(kv.type) ? rotated(step.q, turned, lowering) : list.get(step.q);
    checkHeads(cache);
    lowering.scratchFloats = Math.max(lowering.scratchFloats, inDim * 16); // keys of a register's positions
    const groups = weights ? 1 : heads;
    const blocks = Math.ceil(kv.ctxLen / block);
    const spanBlocks = Math.max(1, Math.floor(SCORE_SPAN / (closed ? 1 : block)));
    const spans = Math.ceil(blocks / spanBlocks);
    const scores = list.make({ name: "scores of positions", dim: groups * blocks }, q);
    list.add(
      "scorePositions",
      { rowSet: q.rowSet, perRow: spans },
      {
        q: q.address,
        weights: weights ? list.get(weights).address : 0,
        keys: cache.keys.address,
        scores: scores.address,
        heads,
        headDim: inDim,
        ctxLen: kv.ctxLen,
        type: KV_TYPES[kv.type],
        block,
        blocks,
        spanBlocks,
        spans,
        closed,
      },
    );
    const y = list.make(step.out, q);
    const values = { groups, count, block, blocks, local, closed };
    list.add("choosePositions", y, { scores: scores.address, out: y.address, ...values });
  },

  bidirectionalAttention(step, lowering) {
    const { memory, kv, scratchRows, layers } = lowering;
    const { nHeads, nKvHeads = nHeads, headDim, window = 0 } = step;
    const shape = { kvHeads: nKvHeads, headDim, valueDim: headDim };
    const cache = layers.get(UNKEPT) ?? allocateLayer(memory, { ...kv, slots: 1, ctxLen: scratchRows }, shape);
    layers.set(UNKEPT, cache);
    assert(cache.kvHeads === nKvHeads && cache.headDim === headDim, "encoders have heads of one shape");
    const v = { buf: step.v, offset: 0, stride: headDim, dim: headDim };
    store({ k: step.k, v }, { cache, heads: nKvHeads, kept: 0 }, lowering);
    const { inSpans = false, ...rest } = step;
    const spans = { ...rest, nKvHeads, window, softCap: 0, oneWay: !inSpans };
    attend(spans, { cache, kept: 0, ctxLen: scratchRows }, lowering);
  },

  crossAttention(step, lowering) {
    const { lengths, ...place } = memoryOf(step.layer, lowering);
    attend({ ...step, window: 0, softCap: 0 }, { ...place, kept: 1, lengths: lengths.address }, lowering);
  },

  remember({ k, v, layer, nKvHeads, headDim }, lowering) {
    const values = { buf: v, offset: 0, stride: headDim, dim: headDim };
    store({ k, v: values }, { ...memoryOf(layer, lowering), heads: nKvHeads, kept: 1 }, lowering);
  },

  keepRemembering({ x }, lowering) {
    const y = changed(lowering.list, x);
    const { shares } = lowering.remembered!; // a program with such steps has one
    lowering.list.add("weigh", y, { x: y.address, shares: shares.address, out: y.address, n: x.dim, used: 1 });
  },
};

function cacheOf(layer: number, { layers }: Lowering): KvLayer {
  const cache = layers.get(layer);
  assert(cache, `no KV cache for layer ${layer}`);
  return cache;
}

function memoryOf(layer: number, { remembered }: Lowering): Remembered & { readonly cache: KvLayer } {
  const cache = remembered?.layers.get(layer);
  assert(remembered && cache, `no memory for layer ${layer}`);
  return { ...remembered, cache };
}

function checkHeads({ headDim, valueDim }: KvLayer): void {
  const most = Math.max(headDim, valueDim);
  if (most <= HEAD_DIM_MAX) return;
  throw new AppError("unsupported", `attention: expected heads of at most ${HEAD_DIM_MAX}, got ${most}`);
}

interface Place {
  readonly cache: KvLayer;
  readonly kept: 0 | 1;
  /** Default: the type of the KV cache. */
  readonly type?: KvType;
}

/** Addresses of the keys and values that rows have just stored, as floats. */
type OwnRows = Pick<RecordValues<"attend">, "ownKeys" | "ownValues">;

/**
 * Returns the rows if the cache has 4 bits: a row then attends to its own key and value before they are rounded. This
 * position has the largest shares, so the divergence of the embedded model's answers falls by a sixth.
 */
function store(
  { k, v }: { k: Buf; v: { buf: Buf; offset: number; stride: number; dim: number } },
  { cache, heads, kept, ratio = 0, ...place }: Place & { heads: number; ratio?: number; ctxLen?: number },
  lowering: Lowering,
): OwnRows {
  const { list, kv, scratchRows } = lowering;
  const { type = kv.type, ctxLen = kept ? kv.ctxLen : scratchRows } = place;
  const { headDim, valueDim } = cache;
  const keys = list.get(k);
  const width = keys.dim / heads;
  const turned = isRotated(type) && {
    k: rotated(k, { heads, stride: width, dim: width, filled: headDim, outDim: headDim }, lowering).address,
    ...(valueDim > 0 && {
      v: rotated(v.buf, { ...v, heads, dim: v.dim, filled: valueDim, outDim: valueDim }, lowering).address,
    }),
    valueStride: valueDim,
  };
  list.add("store", keys, {
    k: keys.address,
    v: list.get(v.buf).address + v.offset * 4,
    keys: cache.keys.address,
    values: cache.values.address,
    heads,
    headDim: cache.headDim,
    valueDim: cache.valueDim,
    valueStride: v.stride,
    ctxLen,
    kept,
    type: KV_TYPES[type],
    ratio,
    ...turned,
  });
  return type === "q4_0" && turned && turned.v !== undefined ? { ownKeys: turned.k, ownValues: turned.v } : {};
}

interface RotatedHeads {
  readonly heads: number;
  /** Offset of the first head in a row. */
  readonly offset?: number;
  /** Distance of heads in a row. */
  readonly stride: number;
  readonly dim: number;
  /** `dim`, padded. */
  readonly filled: number;
  /** Values of a head of the result. */
  readonly outDim: number;
}

/** Multiplies heads by a Hadamard matrix, which is its own inverse, into a separate buffer or `to`. */
function rotated(x: Buf, { offset = 0, ...heads }: RotatedHeads, { list }: Lowering, to?: Buf): Activation {
  const from = list.get(x);
  const y = list.make(to ?? { name: `${x.name} rotated at ${offset}`, dim: heads.heads * heads.outDim }, from);
  const { heads: count, stride, dim, filled, outDim } = heads;
  const values = { n: from.dim, heads: count, stride, dim, filled, outDim };
  list.add("rotate", y, { x: from.address + offset * 4, out: y.address, ...values });
  return y;
}

type Heads = Pick<
  Extract<Step, { op: "sharedAttention" }>,
  | "out"
  | "q"
  | "nHeads"
  | "nKvHeads"
  | "headDim"
  | "valueDim"
  | "scale"
  | "window"
  | "softCap"
  | "sinks"
  | "alibi"
  | "chunked"
  | "oneWay"
> & {
  readonly chosen?: Buf;
  readonly chosenBlock?: number;
  readonly bias?: DistanceBias;
  /** Number of positions per entry. */
  readonly ratio?: number;
};

interface AttendPlace extends Place {
  readonly ctxLen: number;
  /** Address of the number of positions of each row; default: its own position decides. */
  readonly lengths?: number;
  readonly own?: OwnRows;
}

function attend(step: Heads, place: AttendPlace, lowering: Lowering): void {
  const { list, kv, weights } = lowering;
  const { cache, kept, ctxLen, lengths = 0, type = kv.type, own } = place;
  const { nHeads, nKvHeads, headDim, valueDim = headDim, scale, window, softCap, sinks, alibi, bias } = step;
  const { chunked = false, oneWay = false } = step;
  const choice = chosenBy(step, { cache, ctxLen }, lowering);
  const isTurned = isRotated(type);
  checkHeads(cache);
  if (type !== "f32")
    lowering.scratchFloats = Math.max(lowering.scratchFloats, wordFloats(cache.headDim, cache.valueDim));
  const keyHeads = { heads: nHeads, stride: headDim, dim: headDim, filled: cache.headDim, outDim: cache.headDim };
  const q = isTurned ? rotated(step.q, keyHeads, lowering) : list.get(step.q);
  const turned = { name: `${step.out.name} rotated`, dim: nHeads * cache.valueDim };
  const y = list.make(isTurned ? turned : step.out, q);
  const slopes = alibi === undefined ? 0 : weights.constant(Float32Array.from(alibiSlopes(nHeads, alibi)));
  list.add("attend", y, {
    q: q.address,
    out: y.address,
    keys: cache.keys.address,
    values: cache.values.address,
    heads: nHeads,
    kvHeads: nKvHeads,
    headDim: cache.headDim,
    valueDim: cache.valueDim,
    ctxLen,
    kept,
    lengths,
    window,
    chunked: Number(chunked),
    spans: Number(!oneWay),
    scale,
    softCap,
    type: KV_TYPES[type],
    sinks: sinks ? weights.vector(sinks) : 0,
    slopes,
    ...(bias && { biases: weights.constant(bias.values), far: bias.far }),
    ...choice,
    ...own,
  });
  const { valueDim: filled } = cache;
  if (isTurned)
    rotated(turned, { heads: nHeads, stride: filled, dim: filled, filled, outDim: valueDim }, lowering, step.out);
}

/** The chosen positions or entries of rows, and scratch for the keys and values of one row as floats. */
function chosenBy(
  { chosen, chosenBlock = 1, nKvHeads, window, ratio = 0 }: Heads,
  { cache, ctxLen }: Pick<Place, "cache"> & { ctxLen: number },
  lowering: Lowering,
): Pick<RecordValues<"attend">, "chosen" | "chosenCount" | "chosenBlock" | "chosenGroups" | "ratio"> {
  if (!chosen && ratio === 0) return {};
  const chosenCount = chosen ? chosen.dim / nKvHeads : 0;
  const entries = chosen ? chosenCount : Math.floor(ctxLen / ratio);
  const most =
    ratio > 0
      ? fillContext(Math.min(window, ctxLen) + entries + TILES)
      : fillContext(Math.min(chosenCount * chosenBlock, ctxLen) + 1);
  const floats = most * (cache.headDim + Math.ceil(cache.valueDim / 16) * 16);
  lowering.scratchFloats = Math.max(lowering.scratchFloats, floats);
  if (!chosen) return { ratio };
  return { chosen: lowering.list.get(chosen).address, chosenCount, chosenBlock, chosenGroups: nKvHeads, ratio };
}

/** Scratch for a sweep: queries, sums, keys and values of a block, 16 positions as floats, and words of queries. */
function wordFloats(headDim: number, valueDim: number): number {
  const wide = Math.ceil(valueDim / 64) * 64;
  const pairs = Math.ceil(headDim / 2);
  return SWEEP * (QUERY_FLOATS + wide + pairs) + SPAN * (pairs + wide / 2) + 16 * (headDim + wide + 1);
}

/** The attention ops of the reference: over a KV cache, a shared or latent one, and over the rows of a run. */
import { assert } from "../../../base/index.ts";
import { alibiSlopes } from "../../../../kernels/alibi.ts";
import type { DistanceBias, Ops, Step } from "../../program/step.ts";
import { dot, vector } from "./math.ts";
import type { KvLayer, Matrix, Pass } from "./pass.ts";

type AttentionOp = "attention" | "sharedAttention" | "latentAttention" | "bidirectionalAttention";

/** Parameters of the scores over a cache. */
interface Heads {
  readonly nHeads: number;
  readonly nKvHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  readonly scale: number;
  readonly window: number;
  readonly chunked: boolean;
  readonly oneWay: boolean;
  readonly softCap: number;
  readonly sinks: Float32Array | undefined; // (nHeads)
  readonly slopes: Float64Array | undefined; // (nHeads)
  readonly bias: DistanceBias | undefined;
  readonly chosen: Matrix | undefined; // (rows, nKvHeads · blocks)
  readonly chosenBlock: number;
}

type Attention = Extract<Step, { op: "attention" }>;
type Variants = Pick<
  Attention,
  "sinks" | "alibi" | "bias" | "chunked" | "oneWay" | "valueDim" | "chosen" | "chosenBlock"
>;

export const attentionOps: Pick<Ops<void, Pass>, AttentionOp> = {
  attention(step, pass) {
    const layer = cacheOf(step.layer, pass);
    const [k, v] = [pass.get(step.k), pass.get(step.v)];
    store(layer.k, k, pass);
    store(layer.v, v, pass);
    attendPast({ q: pass.get(step.q), out: step.out, cache: layer, heads: headsOf(step, pass) }, pass);
  },

  sharedAttention(step, pass) {
    const cache = cacheOf(step.source, pass);
    attendPast({ q: pass.get(step.q), out: step.out, cache, heads: headsOf(step, pass) }, pass);
  },

  latentAttention(step, pass) {
    const { k } = cacheOf(step.layer, pass);
    store(k, pass.get(step.k), pass);
    const heads = headsOf({ ...step, nKvHeads: 1, window: 0, softCap: 0 }, pass);
    attendPast({ q: pass.get(step.q), out: step.out, cache: { k, v: k }, heads }, pass);
  },

  bidirectionalAttention(step, pass) {
    const [q, k, v] = [pass.get(step.q), pass.get(step.k), pass.get(step.v)];
    const out = pass.make(step.out, q.rows);
    for (let first = 0; first < q.rows;) {
      let end = first + 1;
      while (end < q.rows && pass.sequences[end] === pass.sequences[first]) end++;
      for (let head = 0; head < step.nHeads; head++) attendAll({ q, k, v, out }, { first, end, head }, step, pass);
      first = end;
    }
  },
};

export function cacheOf(layer: number, pass: Pass): KvLayer {
  const cache = pass.kv.get(layer);
  assert(cache, `no KV cache for layer ${layer}`);
  return cache;
}

export function store(cache: Float32Array, { data, rows, dim }: Matrix, pass: Pass): void {
  for (let r = 0; r < rows; r++) {
    cache.set(data.subarray(r * dim, (r + 1) * dim), (pass.slots[r]! * pass.ctxLen + pass.cells[r]!) * dim);
  }
}

type HeadsStep = Pick<Heads, "nHeads" | "nKvHeads" | "scale" | "window" | "softCap"> & Variants & { headDim: number };

function headsOf(step: HeadsStep, pass: Pass): Heads {
  const { nHeads, nKvHeads, headDim, valueDim = headDim, scale, window, softCap } = step;
  const { bias, chunked = false, oneWay = false, chosenBlock = 1 } = step;
  const chosen = step.chosen && pass.get(step.chosen);
  const sinks = step.sinks && vector(step.sinks, pass).slice();
  const slopes = step.alibi === undefined ? undefined : alibiSlopes(nHeads, step.alibi);
  const shape = { nHeads, nKvHeads, keyDim: headDim, valueDim, scale, window, chunked, oneWay, softCap };
  return { ...shape, sinks, slopes, bias, chosen, chosenBlock };
}

function attendPast(
  { q, out, cache, heads }: { q: Matrix; out: { name: string; dim: number }; cache: KvLayer; heads: Heads },
  pass: Pass,
): void {
  const y = pass.make(out, q.rows);
  const sums = new Float64Array(heads.valueDim);
  for (let r = 0; r < q.rows; r++) {
    for (let head = 0; head < heads.nHeads; head++) attend({ q, y, r, head }, { cache, heads, sums }, pass);
  }
}

/** The first cell that a row attends to. */
function firstCell({ window, chunked }: Heads, cell: number): number {
  if (window === 0) return 0;
  return chunked ? cell - (cell % window) : Math.max(0, cell - window + 1);
}

/** Returns whether a KV head of a row reads a cell. */
function choiceOf({ chosen, chosenBlock, nKvHeads }: Heads, row: number, kvHead: number): (cell: number) => boolean {
  if (!chosen) return () => true;
  const count = chosen.dim / nKvHeads;
  const at = row * chosen.dim + kvHead * count;
  const blocks = new Set(chosen.data.subarray(at, at + count));
  return (cell) => blocks.has(Math.floor(cell / chosenBlock));
}

/** One head of one row over its sequence. */
function attend(
  { q, y, r, head }: { q: Matrix; y: Matrix; r: number; head: number },
  { cache, heads, sums }: { cache: KvLayer; heads: Heads; sums: Float64Array },
  { slots, cells, lastCells, ctxLen, scores }: Pass,
): void {
  const { nHeads, nKvHeads, keyDim, valueDim, scale, softCap, bias } = heads;
  const own = Math.floor((head * nKvHeads) / nHeads);
  const [base, cell] = [slots[r]! * ctxLen, cells[r]!];
  const last = heads.oneWay ? cell : lastCells[r]!;
  const slope = heads.slopes?.[head] ?? 0;
  const sink = heads.sinks?.[head];
  const first = firstCell(heads, cell);
  const isChosen = choiceOf(heads, r, own);
  let max = sink ?? -Infinity;
  for (let t = first; t <= last; t++) {
    const at = ((base + t) * nKvHeads + own) * keyDim;
    let score = scale * dot(cache.k, at, q.data, r * q.dim + head * keyDim, keyDim);
    if (softCap > 0) score = softCap * Math.tanh(score / softCap);
    if (bias) score += biasOf(bias, head, t - cell);
    scores[t] = isChosen(t) ? score - slope * Math.abs(cell - t) : -Infinity;
    max = Math.max(max, scores[t]!);
  }
  let total = sink === undefined ? 0 : Math.exp(sink - max);
  sums.fill(0);
  // Values that are part of the keys are their last values.
  const [width, from] = cache.v === cache.k ? [keyDim, keyDim - valueDim] : [valueDim, 0];
  for (let t = first; t <= last; t++) {
    const share = Math.exp(scores[t]! - max);
    total += share;
    const at = ((base + t) * nKvHeads + own) * width + from;
    for (let i = 0; i < valueDim; i++) sums[i]! += share * cache.v[at + i]!;
  }
  const out = r * y.dim + head * valueDim;
  for (let i = 0; i < valueDim; i++) y.data[out + i] = sums[i]! / total;
}

/**
 * One head of the rows `first` … `end − 1`, which attend in both directions as far as the window or their spans reach.
 */
function attendAll(
  { q, k, v, out }: Readonly<Record<"q" | "k" | "v" | "out", Matrix>>,
  { first, end, head }: { first: number; end: number; head: number },
  step: Extract<Step, { op: "bidirectionalAttention" }>,
  { cells, firstCells, lastCells }: Pick<Pass, "cells" | "firstCells" | "lastCells">,
): void {
  const { headDim, scale, nHeads, nKvHeads = nHeads, window = 0, inSpans = false, alibi, bias } = step;
  const reach = window > 0 ? Math.floor(window / 2) : Infinity;
  const slope = alibi === undefined ? 0 : alibiSlopes(nHeads, alibi)[head]!;
  const [at, kvAt] = [head * headDim, Math.floor((head * nKvHeads) / nHeads) * headDim];
  const sums = new Float64Array(headDim);
  for (let r = first; r < end; r++) {
    const [before, behind] = inSpans ? [cells[r]! - firstCells[r]!, lastCells[r]! - cells[r]!] : [reach, reach];
    const [from, to] = [Math.max(first, r - before), Math.min(end, r + behind + 1)];
    const scores = Float64Array.from({ length: to - from }, (_, i) => {
      const score = scale * dot(k.data, (from + i) * k.dim + kvAt, q.data, r * q.dim + at, headDim);
      return score - slope * Math.abs(from + i - r) + (bias ? biasOf(bias, head, from + i - r) : 0);
    });
    const max = scores.reduce((a, b) => Math.max(a, b), -Infinity);
    const shares = scores.map((score) => Math.exp(score - max));
    const total = shares.reduce((a, b) => a + b, 0);
    sums.fill(0);
    for (const [i, share] of shares.entries()) {
      for (let j = 0; j < headDim; j++) sums[j]! += share * v.data[(from + i) * v.dim + kvAt + j]!;
    }
    for (let j = 0; j < headDim; j++) out.data[r * out.dim + at + j] = sums[j]! / total;
  }
}

function biasOf({ values, far }: DistanceBias, head: number, distance: number): number {
  return values[head * (2 * far + 1) + Math.min(Math.max(distance, -far), far) + far]!;
}

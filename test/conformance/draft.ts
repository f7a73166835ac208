/** Builds a conformance case: an embedding, the tested steps on random weights, the wanted rows of their output. */
import type { LoadOptions, Program, Rows } from "../../src/engine/program/backend.ts";
import type { Activation, Buf, DistanceBias, RopeScaling, Step, Weight } from "../../src/engine/program/step.ts";
import { makeRng } from "../../src/engine/text/rng.ts";
import type { QuantName } from "../../src/engine/formats/quant/index.ts";
import { makeWeightBox, type WeightBox } from "./weights.ts";

export interface Case {
  /** `op: what is special` */
  readonly name: string;
  readonly program: Program;
  readonly options: Pick<LoadOptions, "ctxLen" | "slots" | "images">;
  /** Runs, in order, of one session. */
  readonly batches: readonly (readonly Rows[])[];
  /** |got − expected| ≤ abs + rel · |expected|, for float32 arithmetic. Kernels of less precision bring their own. */
  readonly tolerance: { readonly abs: number; readonly rel: number };
}

export const plainRope: RopeScaling = {
  base: 10_000,
  rotaryDim: 16,
  style: "norm",
  freqScale: 1,
  extFactor: 0,
  attnFactor: 1,
  betaFast: 32,
  betaSlow: 1,
  ctxLenOrig: 8,
};

export const VOCAB = 37;
const TOLERANCE = { abs: 2e-5, rel: 2e-4 };
/** Collects a builder's steps: a program that starts with an embedding in `x`. */
export interface Draft extends WeightBox {
  readonly x: Buf;
  readonly steps: Step[];
}

export interface CaseOptions {
  readonly dim: number;
  readonly ctxLen?: number;
  readonly batches?: Case["batches"];
  readonly table?: { quant: QuantName; scale: number };
  readonly tolerance?: Case["tolerance"];
}

/**
 * A case: embedding, the steps that `build` adds, and the wanted rows of the buffer that it returns, unless it selects
 * them itself.
 */
export function makeCase(name: string, options: CaseOptions, build: (draft: Draft) => Buf): Case {
  const { dim, ctxLen = 40, batches = mixedBatches(), tolerance = TOLERANCE } = options;
  const { quant, scale } = options.table ?? { quant: "f32", scale: 1 };
  const rng = makeRng(Bun.hash.crc32(name));
  const box = makeWeightBox(`conformance/${name}`, rng);
  const x = { name: "x", dim };
  const table = box.matrix({ inDim: dim, outDim: VOCAB, quant, size: 1 });
  const steps: Step[] = [{ op: "embed", out: x, table, scale }];
  const out = build({ ...box, x, steps });
  const taken = steps.some(({ op }) => op === "takeRows");
  const logits = taken ? out : { name: "logits", dim: out.dim };
  if (!taken) steps.push({ op: "takeRows", out: logits, x: out });
  const nLayers = steps.filter(({ op }) => op === "attention").length;
  const shape = { arch: "conformance", dim, nLayers, vocabSize: out.dim };
  return {
    name,
    program: { shape, steps, logits, states: logits, weights: box.source },
    options: { ctxLen, slots: 3 },
    batches,
    tolerance,
  };
}

export function rows(slot: number, start: number, count: number, logits: Rows["logits"]): Rows {
  const tokens = Int32Array.from({ length: count }, (_, i) => (slot * 11 + (start + i) * 7 + 3) % VOCAB);
  return { slot, start, tokens, logits };
}

/** Prefill of several lengths, chunks, and decode of several sequences at once; every value of `logits`. */
function mixedBatches(): Case["batches"] {
  return [
    [rows(0, 0, 5, "all")],
    [rows(2, 0, 1, "last")],
    [rows(1, 0, 4, "none"), rows(0, 5, 3, "last")],
    [rows(0, 8, 1, "last"), rows(1, 4, 1, "last"), rows(2, 1, 1, "last")],
    [rows(1, 5, 6, "all"), rows(2, 2, 1, "none")],
    [rows(2, 3, 2, "none")],
    [rows(2, 5, 1, "last"), rows(1, 11, 1, "last")],
    [rows(0, 0, 35, "all")], // more rows than the kernels for few rows take
  ];
}

/** Row counts that kernels for few and for many rows take at once, and one more. */
export function evenBatches(counts: readonly number[] = [4, 5, 32, 33]): Case["batches"] {
  return counts.map((count, slot) => [rows(slot % 3, 0, count, "all")]);
}

/**
 * Prefill of three sequences to different lengths, the first the longest, then decode of all, a few rows and many more
 * of one with a past.
 */
export function longBatches(longest: number): Case["batches"] {
  const [second, third] = [Math.ceil(longest / 4), 3];
  return [
    [rows(0, 0, longest, "none")],
    [rows(1, 0, second, "last"), rows(2, 0, third, "none")],
    [rows(2, third, 1, "last"), rows(0, longest, 1, "last"), rows(1, second, 1, "last")],
    [rows(0, longest + 1, 3, "all")],
    [rows(1, second + 1, 2, "none"), rows(0, longest + 4, 9, "all"), rows(2, third + 1, 4, "all")],
  ];
}

/** A few scattered rows of a context, with gaps between them, up to its end. */
export function scatteredBatches(ctxLen: number): Case["batches"] {
  const starts = [0, 63, 1, 0.3, 0.31, 0.7, 0.99].map((at) => (at < 1 ? Math.floor(at * ctxLen) : at));
  return [...starts, ctxLen - 5].map((start) => [rows(1, start, 4, "all")]);
}

export function linear({ x, steps }: Draft, w: Weight, b?: Weight, name = "y"): Buf {
  const out = { name, dim: w.outDim };
  steps.push({ op: "linear", out, x, w, ...(b && { b }) });
  return out;
}

interface AttentionOptions {
  readonly nHeads: number;
  readonly nKvHeads: number;
  readonly headDim: number;
  readonly window?: number;
  readonly softCap?: number;
  readonly scale?: number;
  readonly rope?: RopeScaling;
  /** Norms of queries and keys, over each head or over whole rows. */
  readonly norms?: "head" | "row";
  readonly positionScale?: { coef: number; floorScale: number; offset: number };
  readonly alibi?: number;
  readonly bias?: DistanceBias;
  readonly chunked?: boolean;
  readonly oneWay?: boolean;
  /** True if heads have sinks. */
  readonly sinks?: boolean;
  /** Values of each head of v. */
  readonly valueDim?: number;
}

/** Attention of projections of x, perhaps rotated. */
export function attention(draft: Draft, options: AttentionOptions): Buf {
  const { x, steps } = draft;
  const { nHeads, nKvHeads, headDim, window = 0, softCap = 0, scale = 1 / Math.sqrt(headDim), rope } = options;
  const { alibi, bias, chunked, oneWay, valueDim = headDim } = options;
  const project = (name: string, outDim: number): Buf =>
    linear(draft, draft.matrix({ inDim: x.dim, outDim, size: 1.5 / Math.sqrt(x.dim) }), undefined, name);
  const [q, k] = [project("q", nHeads * headDim), project("k", nKvHeads * headDim)];
  const v = project("v", nKvHeads * valueDim);
  if (options.norms) {
    for (const x of [q, k]) {
      const w = draft.vector(options.norms === "head" ? headDim : x.dim, { mean: 1 });
      steps.push({ op: "rmsNorm", out: x, x, w, eps: 1e-5 });
    }
  }
  if (rope) {
    steps.push(
      { op: "rope", x: q, heads: nHeads, headDim, rope },
      { op: "rope", x: k, heads: nKvHeads, headDim, rope },
    );
  }
  if (options.positionScale) steps.push({ op: "positionScale", x: q, ...options.positionScale });
  const out = { name: "heads", dim: nHeads * valueDim };
  const layer = steps.filter(({ op }) => op === "attention").length;
  const more = {
    ...(alibi !== undefined && { alibi }),
    ...(bias && { bias }),
    ...(chunked && { chunked }),
    ...(oneWay && { oneWay }),
    ...(options.sinks && { sinks: draft.vector(nHeads, { mean: 1 }) }),
    ...(valueDim !== headDim && { valueDim }),
  };
  steps.push({
    op: "attention",
    out,
    q,
    k,
    v,
    layer,
    nHeads,
    nKvHeads,
    headDim,
    scale,
    window,
    softCap,
    rope,
    ...more,
  });
  return out;
}

interface BidirectionalOptions {
  readonly nHeads: number;
  readonly headDim: number;
  readonly rope?: RopeScaling;
  readonly nKvHeads?: number;
  readonly window?: number;
  readonly inSpans?: boolean;
  readonly alibi?: number;
  readonly bias?: DistanceBias;
}

/** Like `attention`, over all rows of a run. */
export function bidirectionalAttention(
  draft: Draft,
  { nHeads, headDim, rope, nKvHeads = nHeads, ...more }: BidirectionalOptions,
): Buf {
  const { x, steps } = draft;
  const heads = [nHeads, nKvHeads, nKvHeads];
  const [q, k, v] = ["q", "k", "v"].map((name, i) => {
    const w = draft.matrix({ inDim: x.dim, outDim: heads[i]! * headDim, size: 1.5 / Math.sqrt(x.dim) });
    return linear(draft, w, undefined, name);
  }) as [Buf, Buf, Buf]; // one per name
  if (rope) {
    for (const [i, each] of [q, k].entries()) steps.push({ op: "rope", x: each, heads: heads[i]!, headDim, rope });
  }
  const out = { name: "heads", dim: nHeads * headDim };
  const shared = nKvHeads !== nHeads && { nKvHeads };
  const scale = 1 / Math.sqrt(headDim);
  steps.push({ op: "bidirectionalAttention", out, q, k, v, nHeads, headDim, scale, ...shared, ...more });
  return out;
}

interface GatedMlpOptions {
  readonly dim: number;
  readonly ffnDim: number;
  readonly act: Activation;
  readonly quant?: QuantName;
  readonly size?: number;
}

export function gatedMlp({ x, steps, matrix }: Draft, { dim, ffnDim, act, quant = "f32", size }: GatedMlpOptions): Buf {
  const inward = { inDim: dim, outDim: ffnDim, quant, ...(size && { size }) };
  const [gate, up] = [matrix(inward), matrix(inward)];
  const out = { name: "y", dim };
  steps.push({ op: "gatedMlp", out, x, gate, up, down: matrix({ inDim: ffnDim, outDim: dim, quant }), act });
  return out;
}

interface MoeOptions {
  readonly experts: number;
  readonly nUsed: number;
  readonly normalize: boolean;
  readonly scale: number;
  readonly quant?: QuantName;
  readonly factors?: Float32Array;
}

/** A matrix with a change of rank 3. */
export function changed({ matrix }: Draft, w: Weight): Weight {
  const { inDim, outDim, experts } = w;
  const [a, b] = [matrix({ inDim, outDim: 3, experts }), matrix({ inDim: 3, outDim, experts })];
  return { ...w, lowRank: [{ a, b }] };
}

export function moe({ x, steps, matrix }: Draft, { quant = "f32", factors, experts, ...options }: MoeOptions): Buf {
  const out = { name: "y", dim: x.dim };
  const ffnDim = Math.max(x.dim, 48);
  const factor = factors && { scale: factors };
  steps.push({
    op: "moe",
    out,
    x,
    router: matrix({ inDim: x.dim, outDim: experts }),
    gate: { ...matrix({ inDim: x.dim, outDim: ffnDim, experts, quant }), ...factor },
    up: { ...matrix({ inDim: x.dim, outDim: ffnDim, experts, quant }), ...factor },
    down: { ...matrix({ inDim: ffnDim, outDim: x.dim, experts, quant }), ...factor },
    act: "silu",
    ...options,
  });
  return out;
}

/** Cases of compressed blocks of positions, and of hyper-connections between streams. */
import type { Buf, RopeScaling, Step } from "../../src/engine/program/step.ts";
import { evenBatches, linear, longBatches, makeCase, plainRope, rows, VOCAB, type Case, type Draft } from "./draft.ts";

type CompressedOp = "compress" | "compressedAttention" | "lookup" | "mixParts" | "streamWeights";

const project = (draft: Draft, name: string, outDim: number): Buf =>
  linear(draft, draft.matrix({ inDim: draft.x.dim, outDim, size: 1.5 / Math.sqrt(draft.x.dim) }), undefined, name);

interface Blocks {
  readonly ratio: number;
  readonly overlap: boolean;
  readonly headDim: number;
}

/** Entries of blocks from projections of x. */
function compress(draft: Draft, { ratio, overlap, headDim }: Blocks, name = "entries"): Buf {
  const width = (overlap ? 2 : 1) * headDim;
  const [x, gate] = [project(draft, `${name}.x`, width), project(draft, `${name}.gate`, width)];
  const out = { name, dim: headDim };
  const bias = draft.matrix({ inDim: width, outDim: ratio, size: 1 });
  draft.steps.push({ op: "compress", out, x, gate, bias, layer: 0, ratio, overlap });
  return out;
}

interface Attention extends Blocks {
  readonly nHeads: number;
  readonly window: number;
  /** Entries that are chosen. */
  readonly count?: number;
  readonly sinks?: boolean;
}

/** Attention as in DeepSeek V4, with RoPE on the last values of each head. */
function attention(draft: Draft, { nHeads, window, count, sinks, ...blocks }: Attention): Buf {
  const { steps } = draft;
  const { headDim, ratio } = blocks;
  const rope: RopeScaling = { ...plainRope, rotaryDim: 8 };
  const turn = (x: Buf, as: RopeScaling, len = headDim): Step => {
    return { op: "rope", x, heads: x.dim / len, headDim: len, rope: as, at: len - rope.rotaryDim };
  };
  const delayed = { ...rope, delay: ratio - 1 };
  const [q, k] = [project(draft, "q", nHeads * headDim), project(draft, "k", headDim)];
  const entries = compress(draft, blocks);
  steps.push(turn(q, rope), turn(k, rope), turn(entries, delayed));
  const chosen = count && { chosen: { name: "chosen", dim: count } };
  if (chosen) {
    const [heads, len] = [11, 16];
    const [query, weights] = [project(draft, "index q", heads * len), project(draft, "index weights", heads)];
    const key = compress(draft, { ...blocks, headDim: len }, "index k");
    steps.push(turn(query, rope, len), turn(key, delayed, len), {
      op: "choosePositions",
      out: chosen.chosen,
      q: query,
      k: key,
      weights,
      layer: 0,
      cache: 9,
      heads,
      headDim: len,
      count: chosen.chosen.dim,
      block: ratio,
      local: 0,
      rope: undefined,
      closed: true,
    });
  }
  const out = { name: "heads", dim: nHeads * headDim };
  const shape = { layer: 0, nHeads, headDim, scale: 1 / Math.sqrt(headDim), window, ratio };
  const own = sinks && { sinks: draft.vector(nHeads, { mean: 1 }) };
  steps.push({ op: "compressedAttention", out, q, k, entries, ...shape, ...own, ...chosen });
  steps.push(turn(out, { ...rope, back: true }));
  return out;
}

/** Cases in short runs and in a long context. */
function compressed(name: string, options: Attention): Case[] {
  const build = (draft: Draft): Buf => attention(draft, options);
  const long = { ctxLen: 153, batches: longBatches(140) };
  return [
    makeCase(`compressedAttention: ${name}`, { dim: 32 }, build),
    makeCase(`compressedAttention: ${name}, a long context`, { dim: 32, ...long }, build),
  ];
}

function streamWeights(
  name: string,
  { streams, parts, iterations }: Record<"streams" | "parts" | "iterations", number>,
) {
  return makeCase(`streamWeights: ${name}`, { dim: 32 }, (draft) => {
    const x = project(draft, "weights", parts);
    const [scale, base] = [draft.vector(parts > streams ? 3 : 1, { mean: 1 }), draft.vector(parts)];
    draft.steps.push({ op: "streamWeights", x, scale, base, streams, eps: 0.01, iterations });
    return x;
  });
}

/** Runs over two blocks of 128, cut inside blocks and at their ends. */
const batchesOf128 = [
  [rows(0, 0, 100, "none"), rows(1, 0, 127, "none")],
  [rows(0, 100, 30, "all"), rows(1, 127, 1, "last")],
  [rows(0, 130, 120, "none")],
  [rows(0, 250, 8, "all"), rows(1, 128, 3, "all")],
];

export const compressedBuilders: Readonly<Record<CompressedOp, () => Case[]>> = {
  compress: () => [
    ...(
      [
        ["blocks of 4 that overlap", { ratio: 4, overlap: true, headDim: 12 }],
        ["blocks of 4", { ratio: 4, overlap: false, headDim: 7 }],
        ["blocks of 16", { ratio: 16, overlap: false, headDim: 64 }],
      ] as const
    ).map(([name, options]) => makeCase(`compress: ${name}`, { dim: 32 }, (draft) => compress(draft, options))),
    makeCase("compress: blocks of 128", { dim: 32, ctxLen: 260, batches: batchesOf128 }, (draft) =>
      compress(draft, { ratio: 128, overlap: false, headDim: 16 }),
    ),
  ],

  compressedAttention: () => [
    ...compressed("blocks of 4 that overlap, in a window of 7", {
      ratio: 4,
      overlap: true,
      headDim: 16,
      nHeads: 5,
      window: 7,
      sinks: true,
    }),
    ...compressed("blocks of 8 without sinks", { ratio: 8, overlap: false, headDim: 24, nHeads: 2, window: 128 }),
    ...compressed("3 chosen blocks", {
      ratio: 4,
      overlap: true,
      headDim: 32,
      nHeads: 3,
      window: 3,
      count: 3,
      sinks: true,
    }),
    makeCase("compressedAttention: heads of the usual size", { dim: 32 }, (draft) =>
      attention(draft, { ratio: 4, overlap: true, headDim: 512, nHeads: 4, window: 128, count: 5, sinks: true }),
    ),
  ],

  lookup: () => [
    makeCase("lookup: three values of each token", { dim: 4 }, ({ steps }) => {
      const out = { name: "found", dim: 3 };
      steps.push({ op: "lookup", out, values: Float32Array.from({ length: VOCAB * 3 }, (_, i) => (i * 7) % 31) });
      return out;
    }),
  ],

  mixParts: () =>
    (
      [
        ["4 parts to 4", { parts: 4, outs: 4, len: 33 }],
        ["4 parts to 1", { parts: 4, outs: 1, len: 8 }],
        ["1 part to 3", { parts: 1, outs: 3, len: 20 }],
      ] as const
    ).map(([name, { parts, outs, len }]) =>
      makeCase(`mixParts: ${name}`, { dim: 32, batches: evenBatches([1, 5, 33]) }, (draft) => {
        const [x, weights] = [project(draft, "parts", parts * len), project(draft, "weights", parts * outs + 5)];
        const out = { name: "mixed", dim: outs * len };
        draft.steps.push({ op: "mixParts", out, x, weights, at: 3, parts });
        return out;
      }),
    ),

  streamWeights: () => [
    streamWeights("of 4 streams", { streams: 4, parts: 24, iterations: 20 }),
    streamWeights("of 3 streams, one iteration", { streams: 3, parts: 15, iterations: 1 }),
    streamWeights("of 4 streams, the first part only", { streams: 4, parts: 4, iterations: 1 }),
  ],
};

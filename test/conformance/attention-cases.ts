/** The cases of attention and rotations: heads of every shape, windows, contexts that kernels split or tile. */
import type { Buf, DistanceBias, RopeScaling, Step, Weight } from "../../src/engine/program/step.ts";
import {
  attention,
  bidirectionalAttention,
  evenBatches,
  linear,
  longBatches,
  makeCase,
  plainRope,
  rows,
  scatteredBatches,
  type Case,
  type Draft,
} from "./draft.ts";

export function ropeCases(): Case[] {
  const factors = Float32Array.from({ length: 8 }, (_, i) => 1 + i / 4);
  const variants: [string, RopeScaling, headDim?: number][] = [
    ["norm", plainRope],
    ["neox", { ...plainRope, style: "neox" }],
    ["norm, a part of each head", plainRope, 48],
    ["neox, a part of each head", { ...plainRope, style: "neox" }, 48],
    ["heads that come in no fours", plainRope, 18],
    ["linear scaling, another base", { ...plainRope, base: 1e6, freqScale: 0.25 }],
    [
      "YaRN",
      { ...plainRope, base: 100, style: "neox", freqScale: 0.25, extFactor: 1, attnFactor: 0.9, ctxLenOrig: 64 },
    ],
    ["frequency factors", { ...plainRope, freqFactors: factors }],
    [
      "long frequency factors and a magnitude",
      {
        ...plainRope,
        style: "neox",
        freqFactors: factors,
        freqFactorsLong: factors.map((f) => f * 3),
        attnFactor: 1.19,
      },
    ],
  ];
  const normed = (["head", "row"] as const).flatMap((norms) =>
    [48, 80].map((headDim) =>
      makeCase(`rope: heads of ${headDim}, normed over each ${norms}`, { dim: 32 }, (draft) =>
        attention(draft, { nHeads: 4, nKvHeads: 2, headDim, rope: { ...plainRope, style: "neox" }, norms }),
      ),
    ),
  );
  return [
    ...variants.map(([name, rope, headDim = 16]) =>
      makeCase(`rope: ${name}`, { dim: 32 }, (draft) => attention(draft, { nHeads: 4, nKvHeads: 2, headDim, rope })),
    ),
    ...normed,
  ];
}

export const attentionCases = (): Case[] => [
  ...variantCases(),
  ...(
    [
      [1, 1, 8],
      [4, 4, 16],
      [6, 2, 32],
      [8, 1, 16],
      [3, 3, 80],
      [2, 1, 256],
      [3, 1, 512],
      [2, 2, 321],
    ] as const
  ).map(([nHeads, nKvHeads, headDim]) =>
    makeCase(`attention: ${nHeads} heads on ${nKvHeads} of ${headDim}`, { dim: 32 }, (draft) =>
      attention(draft, { nHeads, nKvHeads, headDim }),
    ),
  ),
  ...[1, 3, 8].map((window) =>
    makeCase(`attention: a window of ${window}`, { dim: 32 }, (draft) =>
      attention(draft, { nHeads: 4, nKvHeads: 2, headDim: 16, window }),
    ),
  ),
  makeCase("attention: capped scores", { dim: 32 }, (draft) =>
    attention(draft, { nHeads: 4, nKvHeads: 2, headDim: 16, softCap: 2, scale: 1.5 }),
  ),
  ...(
    [
      ["4 heads on 1 of 64", { nHeads: 4, nKvHeads: 1, headDim: 64 }],
      ["8 heads on 1 of 8", { nHeads: 8, nKvHeads: 1, headDim: 8 }],
      ["5 heads on 1 of 7", { nHeads: 5, nKvHeads: 1, headDim: 7 }],
      ["2 heads on 2 of 80", { nHeads: 2, nKvHeads: 2, headDim: 80 }],
      ["3 heads on 1 of 128", { nHeads: 3, nKvHeads: 1, headDim: 128 }],
      ["1 head on 1 of 256", { nHeads: 1, nKvHeads: 1, headDim: 256 }],
      ["6 heads on 1 of 512", { nHeads: 6, nKvHeads: 1, headDim: 512 }],
      ["sinks, heads that rotate", { nHeads: 6, nKvHeads: 1, headDim: 16, rope: plainRope, sinks: true }],
      ["sinks, keys of 18 and values of 24", { nHeads: 4, nKvHeads: 2, headDim: 18, valueDim: 24, sinks: true }],
      [
        "sinks, heads that rotate, each normed, in a window of 65",
        { nHeads: 4, nKvHeads: 2, headDim: 64, rope: plainRope, norms: "head", window: 65, sinks: true },
      ],
      ["ALiBi, five heads on 1", { nHeads: 5, nKvHeads: 1, headDim: 20, alibi: 8 }],
      ["ALiBi and sinks", { nHeads: 4, nKvHeads: 2, headDim: 16, alibi: 4, sinks: true }],
      ["a bias by distance, five heads on 1", { nHeads: 5, nKvHeads: 1, headDim: 20, bias: distanceBias(5, 40) }],
      ["a bias by distance, capped", { nHeads: 6, nKvHeads: 6, headDim: 64, softCap: 2, bias: distanceBias(6, 128) }],
      ["chunks of 70", { nHeads: 4, nKvHeads: 2, headDim: 16, rope: plainRope, chunked: true, window: 70 }],
      ["chunks of 280", { nHeads: 2, nKvHeads: 1, headDim: 16, chunked: true, window: 280 }],
      [
        "a window of 270 and capped scores",
        { nHeads: 4, nKvHeads: 2, headDim: 16, window: 270, softCap: 2, scale: 1.5 },
      ],
      ["a window of 65", { nHeads: 2, nKvHeads: 1, headDim: 20, window: 65 }],
      ["scores too large for exp", { nHeads: 2, nKvHeads: 2, headDim: 16, scale: 300 }],
      ["heads that rotate", { nHeads: 6, nKvHeads: 1, headDim: 16, rope: plainRope }],
      [
        "heads that rotate, each normed, in a window of 65",
        { nHeads: 4, nKvHeads: 2, headDim: 64, rope: plainRope, norms: "head", window: 65 },
      ],
      [
        "heads that rotate, rows normed, in a window of 270 and capped",
        { nHeads: 4, nKvHeads: 2, headDim: 20, rope: plainRope, norms: "row", window: 270, softCap: 2 },
      ],
    ] as const
  ).map(([name, options]) => {
    const longest = 290;
    const sizes = { dim: 32, ctxLen: longest + 13, batches: longBatches(longest) };
    return makeCase(`attention: a long context, ${name}`, sizes, (draft) => attention(draft, options));
  }),
  makeCase(
    "attention: a context of more tiles than splits",
    { dim: 8, ctxLen: 4200, batches: scatteredBatches(4200) },
    (draft) => attention(draft, { nHeads: 1, nKvHeads: 1, headDim: 8 }),
  ),
  makeCase("attention: scores too large for exp", { dim: 32 }, (draft) =>
    attention(draft, { nHeads: 2, nKvHeads: 2, headDim: 16, scale: 300 }),
  ),
];

/** Variants used by few architectures. */
const variantCases = (): Case[] =>
  (
    [
      ["sinks", { sinks: true }],
      ["ALiBi", { alibi: 8 }],
      ["ALiBi, six heads", { alibi: 8, nHeads: 6 }],
      ["chunks of 4", { chunked: true, window: 4 }],
      ["a bias by distance", { bias: distanceBias(4, 3) }],
      ["a bias by distance, ALiBi and sinks", { bias: distanceBias(4, 2), alibi: 8, sinks: true }],
      ["values of 8", { valueDim: 8 }],
      ["values of 24, sinks, in a window of 3", { valueDim: 24, sinks: true, window: 3 }],
    ] as const
  ).map(([name, options]) =>
    makeCase(`attention: ${name}`, { dim: 32 }, (draft) =>
      attention(draft, { nHeads: 4, nKvHeads: 2, headDim: 16, rope: plainRope, ...options }),
    ),
  );

/** A second attention over the keys and values of the first. */
export const sharedAttentionCases = (): Case[] =>
  (
    [
      ["all positions", { window: 0 }],
      ["a window of 3, capped", { window: 3, softCap: 2 }],
    ] as const
  ).map(([name, { window, ...more }]) =>
    makeCase(`sharedAttention: ${name}`, { dim: 32 }, (draft) => {
      const heads = { nHeads: 4, nKvHeads: 2, headDim: 16 };
      const first = attention(draft, { ...heads, rope: plainRope });
      const q = linear(draft, draft.matrix({ inDim: 32, outDim: 64 }), undefined, "q2");
      const out = { name: "heads2", dim: 64 };
      const { softCap = 0 } = "softCap" in more ? more : {};
      draft.steps.push(
        { op: "rope", x: q, heads: 4, headDim: 16, rope: plainRope },
        { op: "sharedAttention", out, q, layer: 1, source: 0, ...heads, scale: 0.3, window, softCap },
        { op: "add", out, a: out, b: first, scale: 0.5 },
      );
      return out;
    }),
  );

/** Keys of which a part rotates, and the rest is also the value. */
export const latentAttentionCases = (): Case[] => [
  ...[1, 4].map((nHeads) => latentCase(`${nHeads} heads`, { nHeads, headDim: 24, valueDim: 16 })),
  latentCase("5 heads of the usual size over a long context", { nHeads: 5, headDim: 576, valueDim: 512 }, 290),
  makeCase("latentAttention: sinks", { dim: 32 }, (draft) =>
    latent(draft, { nHeads: 4, headDim: 24, valueDim: 16 }, { sinks: draft.vector(4) }),
  ),
];

function latentCase(
  name: string,
  { nHeads, headDim, valueDim }: { nHeads: number; headDim: number; valueDim: number },
  longest?: number,
): Case {
  const long = longest && { ctxLen: longest + 13, batches: longBatches(longest) };
  return makeCase(`latentAttention: ${name}`, { dim: 32, ...long }, (draft) =>
    latent(draft, { nHeads, headDim, valueDim }),
  );
}

function latent(
  draft: Draft,
  { nHeads, headDim, valueDim }: { nHeads: number; headDim: number; valueDim: number },
  more: { chosen?: Buf; chosenBlock?: number; sinks?: Weight } = {},
): Buf {
  const project = (name: string, outDim: number): Buf =>
    linear(draft, draft.matrix({ inDim: 32, outDim }), undefined, name);
  const [q, k] = [project("q", nHeads * headDim), project("k", headDim)];
  const rope = { ...plainRope, rotaryDim: 8 };
  const out = { name: "heads", dim: nHeads * valueDim };
  const scale = 2 / Math.sqrt(headDim);
  draft.steps.push(
    { op: "rope", x: q, heads: nHeads, headDim, rope },
    { op: "rope", x: k, heads: 1, headDim, rope },
    { op: "latentAttention", out, q, k, layer: 0, nHeads, headDim, valueDim, scale, rope, ...more },
  );
  return out;
}

export const choosePositionsCases = (): Case[] => [
  ...(
    [
      ["9 of 1", { count: 9, block: 1, local: 0 }],
      ["3 blocks of 4, the last one always", { count: 3, block: 4, local: 1 }],
      ["as many as there are", { count: 40, block: 1, local: 0 }],
    ] as const
  ).map(([name, sizes]) => chosenLatentCase(name, { nHeads: 5, heads: 9, ...sizes })),
  chosenLatentCase("33 of a long context", { nHeads: 2, heads: 2, count: 33, block: 1, local: 0 }, 290),
  makeCase("choosePositions: 9 of 1, heads of the usual size", { dim: 32 }, (draft) => {
    const choice = chosen(draft, { heads: 20, indexDim: 32, count: 9, block: 1, local: 0 }, true);
    return latent(draft, { nHeads: 2, headDim: 576, valueDim: 512 }, choice);
  }),
  ...(
    [
      ["of each KV head, 3 blocks of 4", { count: 3, block: 4, local: 1 }, {}],
      ["of each KV head, 7 of 1, the last three always", { count: 7, block: 1, local: 3 }, {}],
      [
        "of each KV head, 4 blocks of 65, many rows",
        { count: 4, block: 65, local: 2 },
        { ctxLen: 310, batches: [[rows(0, 0, 262, "none")], [rows(0, 262, 40, "all")], [rows(0, 302, 3, "all")]] },
      ],
    ] as const
  ).map(([name, sizes, long]) =>
    makeCase(`choosePositions: ${name}`, { dim: 32, ...long }, (draft) => {
      const [nHeads, nKvHeads, headDim] = [6, 2, 20];
      const choice = chosen(draft, { heads: nKvHeads, ...sizes });
      const out = attention(draft, { nHeads, nKvHeads, headDim, rope: plainRope });
      const step = draft.steps.pop() as Extract<Step, { op: "attention" }>;
      draft.steps.push({ ...step, ...choice });
      return out;
    }),
  ),
];

interface ChoiceSizes {
  readonly heads: number;
  readonly count: number;
  readonly block: number;
  readonly local: number;
  readonly indexDim?: number;
}

/** Steps that choose positions: by one sum of all heads, or by each head. */
function chosen(draft: Draft, { heads, indexDim: headDim = 24, ...sizes }: ChoiceSizes, isSum = false) {
  const rope = { ...plainRope, rotaryDim: 8 };
  const project = (name: string, outDim: number): Buf =>
    linear(draft, draft.matrix({ inDim: 32, outDim }), undefined, name);
  const [q, k] = [project("index q", heads * headDim), project("index k", headDim)];
  const out = { name: "chosen", dim: sizes.count * (isSum ? 1 : heads) };
  const weights = isSum ? { weights: project("index weights", heads) } : {};
  draft.steps.push(
    { op: "rope", x: q, heads, headDim, rope },
    { op: "rope", x: k, heads: 1, headDim, rope },
    { op: "choosePositions", out, q, k, ...weights, layer: 0, cache: 9, heads, headDim, rope, ...sizes },
  );
  return { chosen: out, chosenBlock: sizes.block };
}

function chosenLatentCase(
  name: string,
  { nHeads, ...sizes }: ChoiceSizes & { nHeads: number },
  longest?: number,
): Case {
  const long = longest && { ctxLen: longest + 13, batches: longBatches(longest) };
  return makeCase(`choosePositions: ${name}`, { dim: 32, ...long }, (draft) =>
    latent(draft, { nHeads, headDim: 24, valueDim: 16 }, chosen(draft, sizes, true)),
  );
}

/** Values that no symmetry hides. */
const distanceBias = (nHeads: number, far: number): DistanceBias => ({
  values: Float32Array.from({ length: nHeads * (2 * far + 1) }, (_, i) => Math.sin(1.7 * i) * 2),
  far,
});

export const bidirectionalAttentionCases = (): Case[] => [
  ...(
    [
      ["a window of 4", { window: 4 }],
      ["ALiBi", { alibi: 8 }],
      ["a bias by distance", { bias: distanceBias(4, 3) }],
      ["a bias by distance beyond all rows, on shared keys", { nKvHeads: 2, bias: distanceBias(4, 60) }],
      ["4 heads on 2", { nKvHeads: 2 }],
      ["4 heads on 1 in a window of 3, with ALiBi", { nKvHeads: 1, window: 3, alibi: 8 }],
    ] as const
  ).map(([name, options]) =>
    makeCase(`bidirectionalAttention: ${name}`, { dim: 32 }, (draft) =>
      bidirectionalAttention(draft, { nHeads: 4, headDim: 16, ...options }),
    ),
  ),
  ...(
    [
      [1, 8],
      [4, 16],
      [3, 20],
      [2, 64],
    ] as const
  ).map(([nHeads, headDim]) =>
    makeCase(`bidirectionalAttention: ${nHeads} heads of ${headDim}`, { dim: 32 }, (draft) =>
      bidirectionalAttention(draft, { nHeads, headDim }),
    ),
  ),
  makeCase(
    "bidirectionalAttention: more rows than a tile has",
    { dim: 32, ctxLen: 100, batches: evenBatches([100, 1, 70, 65]) },
    (draft) => bidirectionalAttention(draft, { nHeads: 3, headDim: 20 }),
  ),
  makeCase(
    "bidirectionalAttention: a window shorter than a tile",
    { dim: 32, ctxLen: 150, batches: evenBatches([150, 65]) },
    (draft) => bidirectionalAttention(draft, { nHeads: 2, nKvHeads: 1, headDim: 20, window: 50 }),
  ),
  makeCase(
    "bidirectionalAttention: a bias by distance over several tiles",
    { dim: 32, ctxLen: 150, batches: evenBatches([150, 1, 65]) },
    (draft) => bidirectionalAttention(draft, { nHeads: 2, headDim: 20, bias: distanceBias(2, 21) }),
  ),
  makeCase("bidirectionalAttention: heads that rotate", { dim: 32 }, (draft) =>
    bidirectionalAttention(draft, { nHeads: 4, headDim: 16, rope: { ...plainRope, style: "neox" } }),
  ),
];

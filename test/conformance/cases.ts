/**
 * Conformance cases of all backends against `cpu.ts`: small programs around each step, with random weights in every
 * block type and awkward shapes, and their batches. A backend's own test runs them all with `runCase` and compares.
 */
import type { Backend, KvOption, LoadOptions, Rows } from "../../src/engine/program/backend.ts";
import { writtenBy } from "../../src/engine/program/describe.ts";
import type { Buf, Step, Weight } from "../../src/engine/program/step.ts";
import { makeRng } from "../../src/engine/text/rng.ts";
import { quants, type QuantName } from "../../src/engine/formats/quant/index.ts";
import { gaussian } from "./weights.ts";
import {
  attentionCases,
  bidirectionalAttentionCases,
  choosePositionsCases,
  latentAttentionCases,
  ropeCases,
  sharedAttentionCases,
} from "./attention-cases.ts";
import { compressedBuilders } from "./compressed-cases.ts";
import { memoryCases } from "./memory-cases.ts";
import { moeVariantCases } from "./moe-cases.ts";
import { normBuilders } from "./norm-cases.ts";
import { partBuilders } from "./part-cases.ts";
import { recurrentBuilders } from "./recurrent-cases.ts";
import {
  attention,
  changed,
  gatedMlp,
  evenBatches,
  linear,
  makeCase,
  moe,
  plainRope,
  VOCAB,
  type Case,
} from "./draft.ts";

export type { Case };

/** Types that ggml packs in blocks of 256 need rows of 256; 512 for more than one block. */
const IN_DIM = 512;

/** Every case, the same each time. */
export function conformanceCases(): Case[] {
  return Object.values(builders).flatMap((build) => build());
}

/** Runs a case on a backend; returns copies of each run's logits. */
export async function runCase(
  backend: Backend,
  { program, options, batches }: Case,
  { precise = true, ...more }: Partial<Pick<LoadOptions, KvOption>> = {},
): Promise<Float32Array[]> {
  const session = await backend.load(program, { ...options, ...more, precise, threads: 1, cacheDir: undefined });
  try {
    const results: Float32Array[] = [];
    for (const batch of batches) results.push((await session.run(batch)).slice());
    return results;
  } finally {
    session.close();
  }
}

const quantNames = Object.keys(quants) as QuantName[]; // the literal's keys

/** Types in which every byte after the scales belongs to a weight. */
const extremes = ["q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_K", "q3_K", "q4_K", "q5_K", "q6_K", "iq4_nl"] as const;

/** The case without its embedding: rows are given as values, random by default. */
function givenInput({ program, batches, ...rest }: Case, value?: (row: number, at: number) => number): Case {
  const rng = makeRng(5);
  const [first, ...steps] = program.steps;
  const out = writtenBy(first!); // the embedding
  const give = (rows: Rows): Rows => {
    const length = rows.tokens.length * out.dim;
    const valueAt = (i: number): number => value?.(Math.floor(i / out.dim), i % out.dim) ?? gaussian(rng);
    return { ...rows, input: Float32Array.from({ length }, (_, i) => valueAt(i)) };
  };
  return {
    ...rest,
    program: { ...program, steps: [{ op: "input", out }, ...steps] },
    batches: batches.map((batch) => batch.map(give)),
  };
}

/** A compile error here means an op without cases. */
const builders: Readonly<Record<Step["op"], () => Case[]>> = {
  crossAttention: memoryCases,
  remember: () => [], // crossAttention has its cases
  keepRemembering: () => [],
  embed: () => [
    makeCase("embed: one value per token", { dim: 1 }, ({ x }) => x),
    makeCase("embed: a second table, joined with the first", { dim: 32 }, ({ x, steps, matrix }) => {
      const more = { name: "more", dim: 32 };
      const table = matrix({ inDim: 32, outDim: VOCAB, quant: "q8_0", size: 1 });
      steps.push(
        { op: "embed", out: more, table, scale: 0.5, vectorToken: 0 },
        { op: "add", out: x, a: x, b: more, scale: 1 },
      );
      return x;
    }),
    ...quantNames.map((quant) =>
      makeCase(`embed: ${quant}, scaled`, { dim: IN_DIM, table: { quant, scale: 1.5 } }, ({ x }) => x),
    ),
  ],

  input: () => [
    ...[1, 31, 64].map((dim) => givenInput(makeCase(`input: rows of ${dim}`, { dim }, ({ x }) => x))),
    givenInput(
      makeCase("input: behind it attention", { dim: 24 }, (draft) =>
        attention(draft, { nHeads: 4, nKvHeads: 2, headDim: 16, rope: plainRope }),
      ),
    ),
    givenInput(makeCase("input: many rows", { dim: 64, ctxLen: 33, batches: evenBatches() }, ({ x }) => x)),
  ],

  linear: () => [
    ...quantNames.map((quant) =>
      makeCase(`linear: ${quant}`, { dim: IN_DIM }, (draft) =>
        linear(draft, draft.matrix({ inDim: IN_DIM, outDim: 65, quant })),
      ),
    ),
    ...quantNames.map((quant) => {
      const dim = quants[quant].blockLen;
      return makeCase(
        `linear: ${quant}, one block to 3, four rows and many`,
        { dim, ctxLen: 33, batches: evenBatches() },
        (draft) => linear(draft, draft.matrix({ inDim: dim, outDim: 3, quant })),
      );
    }),
    ...extremes.map((quant) => {
      const blocks = Math.max(2, 256 / quants[quant].blockLen); // per row
      const bytes = [0x00, 0xff, 0x7f, 0x80].flatMap((byte) => Array<number>(blocks).fill(byte));
      const dim = blocks * quants[quant].blockLen;
      const draft = makeCase(`linear: ${quant}, sums as large as they get`, { dim, batches: evenBatches([9]) }, (one) =>
        linear(one, one.matrix({ inDim: dim, outDim: 8, quant, bytes })),
      );
      return givenInput(draft, (row, at) => [1, -1, at % 4 < 2 ? 1 : -1][row % 3]!);
    }),
    ...(
      [
        [1, 1],
        [3, 5],
        [33, 1],
        [40, 129],
      ] as const
    ).map(([dim, outDim]) =>
      makeCase(`linear: ${dim} to ${outDim}`, { dim }, (draft) => linear(draft, draft.matrix({ inDim: dim, outDim }))),
    ),
    makeCase("linear: with a change of low rank", { dim: 64 }, (draft) =>
      linear(draft, changed(draft, draft.matrix({ inDim: 64, outDim: 48, quant: "q8_0" })), draft.vector(48)),
    ),
    makeCase("linear: scaled, with a bias", { dim: 64 }, (draft) => {
      const w = draft.matrix({ inDim: 64, outDim: 48, quant: "q8_0" });
      return linear(draft, { ...w, scale: Float32Array.of(-0.7) }, draft.vector(48));
    }),
    ...(["f16", "q4_0", "q6_K"] as const).map((quant) =>
      makeCase(`linear: three parts of a fused tensor, ${quant}`, { dim: 256 }, (draft) => {
        const fused = draft.matrix({ inDim: 256, outDim: 60, quant });
        const part = (name: string, rowStart: number): Buf =>
          linear(draft, { ...fused, outDim: 20, rowStart }, undefined, name);
        const [a, b, c] = [part("a", 0), part("b", 20), part("c", 40)];
        draft.steps.push({ op: "add", out: a, a, b, scale: 2 }, { op: "add", out: a, a, b: c, scale: -3 });
        return a;
      }),
    ),
  ],

  rope: ropeCases,

  attention: attentionCases,
  sharedAttention: sharedAttentionCases,
  latentAttention: latentAttentionCases,
  choosePositions: choosePositionsCases,

  bidirectionalAttention: bidirectionalAttentionCases,

  mlp: () => [
    ...(["silu", "gelu", "gelu_erf", "relu", "relu_sqr", "sigmoid", "tanh"] as const).map((act) =>
      makeCase(`mlp: ${act}`, { dim: 64 }, ({ x, steps, matrix }) => {
        const out = { name: "y", dim: 64 };
        const [up, down] = [matrix({ inDim: 64, outDim: 96, size: 0.4 }), matrix({ inDim: 96, outDim: 64 })];
        steps.push({ op: "mlp", out, x, up, down, act });
        return out;
      }),
    ),
    ...(["f16", "q4_0", "q8_0", "q4_K", "q6_K"] as const).map((quant) =>
      makeCase(`mlp: ${quant}, with biases`, { dim: 256 }, ({ x, steps, matrix, vector }) => {
        const out = { name: "y", dim: 256 };
        const up = matrix({ inDim: 256, outDim: IN_DIM, quant });
        const down = matrix({ inDim: IN_DIM, outDim: 256, quant });
        steps.push({ op: "mlp", out, x, up, upB: vector(IN_DIM), down, downB: vector(256), act: "gelu" });
        return out;
      }),
    ),
  ],

  addPosition: () => [
    makeCase("addPosition: a row of a table for each position", { dim: 33 }, ({ x, steps, matrix }) => {
      steps.push({ op: "addPosition", x, table: matrix({ inDim: 33, outDim: 40, size: 1 }) });
      return x;
    }),
  ],

  addGiven: () => [
    makeCase("addGiven: nothing for rows with ids", { dim: 33 }, ({ x, steps }) => {
      steps.push({ op: "addGiven", x, at: 33 });
      return x;
    }),
  ],

  addVector: () => [
    makeCase("addVector: a vector, and a row of a matrix", { dim: 33 }, ({ x, steps, matrix, vector }) => {
      steps.push({ op: "addVector", x, w: vector(33) });
      steps.push({ op: "addVector", x, w: { ...matrix({ inDim: 33, outDim: 3, size: 1 }), outDim: 1, rowStart: 1 } });
      return x;
    }),
  ],

  gatedMlp: () => [
    ...(["silu", "gelu", "gelu_erf", "relu", "relu_sqr", "sigmoid", "tanh"] as const).map((act) =>
      makeCase(`gatedMlp: ${act}`, { dim: 64 }, (draft) => gatedMlp(draft, { dim: 64, ffnDim: 96, act, size: 0.4 })),
    ),
    ...quantNames.map((quant) =>
      makeCase(`gatedMlp: ${quant}`, { dim: 256 }, (draft) =>
        gatedMlp(draft, { dim: 256, ffnDim: IN_DIM, act: "silu", quant }),
      ),
    ),
    ...Object.entries({
      "limits of the gate": { gate: 0.1, up: 0.2 },
      "soft limits of the gate": { gate: 0.3, up: 0.2, soft: true },
      "a soft limit of SiLU alone": { gate: 0.3, up: 0, soft: true },
    } as const).map(([name, limit]) =>
      makeCase(`gatedMlp: ${name}`, { dim: 64 }, (draft) => {
        const out = gatedMlp(draft, { dim: 64, ffnDim: 97, act: "silu", size: 0.4 });
        const step = draft.steps.pop() as Extract<Step, { op: "gatedMlp" }>; // the last step
        draft.steps.push({ ...step, limit });
        return out;
      }),
    ),
    makeCase("gatedMlp: fused gate and up", { dim: 64 }, ({ x, steps, matrix }) => {
      const fused = matrix({ inDim: 64, outDim: 192, quant: "q8_0" });
      const [gate, up] = [
        { ...fused, outDim: 96 },
        { ...fused, outDim: 96, rowStart: 96 },
      ];
      const out = { name: "y", dim: 64 };
      steps.push({ op: "gatedMlp", out, x, gate, up, down: matrix({ inDim: 96, outDim: 64 }), act: "silu" });
      return out;
    }),
    makeCase("gatedMlp: biases and factors", { dim: 64 }, ({ x, steps, matrix, vector }) => {
      const scaled = (w: Weight, by: number): Weight => ({ ...w, scale: Float32Array.of(by) });
      const out = { name: "y", dim: 64 };
      steps.push({
        op: "gatedMlp",
        out,
        x,
        gate: scaled(matrix({ inDim: 64, outDim: 96 }), 1.5),
        gateB: scaled(vector(96), 1.5),
        up: matrix({ inDim: 64, outDim: 96 }),
        upB: vector(96),
        down: scaled(matrix({ inDim: 96, outDim: 64 }), -2),
        downB: scaled(vector(64), -2),
        act: "silu",
      });
      return out;
    }),
  ],

  moe: () => [
    ...moeVariantCases(),
    ...(
      [
        [4, 1],
        [4, 2],
        [8, 3],
        [3, 3],
        [1, 1],
      ] as const
    ).flatMap(([experts, nUsed]) =>
      [true, false].map((normalize) =>
        makeCase(`moe: ${nUsed} of ${experts}${normalize ? ", normalized" : ""}`, { dim: 32 }, (draft) =>
          moe(draft, { experts, nUsed, normalize, scale: 1 }),
        ),
      ),
    ),
    ...(["f16", "q4_0", "q8_0", "q4_K", "q6_K", "mxfp4"] as const).map((quant) =>
      makeCase(`moe: ${quant}, scaled`, { dim: 256 }, (draft) =>
        moe(draft, { experts: 4, nUsed: 2, normalize: true, scale: 2.5, quant }),
      ),
    ),
    ...(
      [
        [24, 3],
        [2, 1],
        [1, 1],
      ] as const
    ).map(([experts, nUsed]) =>
      makeCase(
        `moe: ${nUsed} of ${experts}, four rows and many`,
        { dim: 40, ctxLen: 33, batches: evenBatches() },
        (draft) => moe(draft, { experts, nUsed, normalize: true, scale: 1, quant: "f16" }),
      ),
    ),
    ...[20, 112].map((ffnDim) =>
      makeCase(`moe: beside an MLP of ${ffnDim} that every row passes, normed`, { dim: 64 }, (draft) => {
        const { x, steps, vector } = draft;
        const h = { name: "h", dim: 64 };
        steps.push({ op: "rmsNorm", out: h, x, w: vector(64, { mean: 1 }), eps: 1e-5 });
        const mlp = gatedMlp({ ...draft, x: h }, { dim: 64, ffnDim, act: "silu", quant: "f16" });
        const shared = { name: "shared", dim: 64 };
        steps.push({ op: "add", out: shared, a: x, b: mlp, scale: 0.4 });
        const factors = Float32Array.of(0.5, -1, 2);
        const y = moe({ ...draft, x: h }, { experts: 3, nUsed: 2, normalize: true, scale: 1, factors });
        steps.push({ op: "add", out: x, a: shared, b: y, scale: 0.4 });
        return x;
      }),
    ),
    ...(["gate", "up", "down"] as const).map((part) =>
      makeCase(`moe: ${part} with a change of low rank`, { dim: 32 }, (draft) => {
        const out = moe(draft, { experts: 3, nUsed: 2, normalize: true, scale: 1 });
        const step = draft.steps.pop() as Step & { op: "moe" }; // the last step
        draft.steps.push({ ...step, [part]: changed(draft, step[part]!) });
        return out;
      }),
    ),
    makeCase("moe: a factor per expert", { dim: 32 }, (draft) =>
      moe(draft, { experts: 3, nUsed: 2, normalize: true, scale: 1, factors: Float32Array.of(0.5, -1, 2) }),
    ),
  ],

  add: () => [
    makeCase("add: into a new buffer, into the left and into the right one", { dim: 33 }, (draft) => {
      const { x, steps } = draft;
      const y = linear(draft, draft.matrix({ inDim: 33, outDim: 33 }));
      const z = { name: "z", dim: 33 };
      steps.push(
        { op: "add", out: z, a: x, b: y, scale: 0.22 },
        { op: "add", out: z, a: z, b: y, scale: 1 },
        { op: "add", out: y, a: z, b: y, scale: -2 },
      );
      return y;
    }),
  ],

  positionScale: () => [
    makeCase("positionScale: queries that are normed and turned before", { dim: 32 }, (draft) => {
      const positionScale = { coef: 0.4, floorScale: 3, offset: 1 };
      return attention(draft, { nHeads: 4, nKvHeads: 2, headDim: 16, rope: plainRope, norms: "head", positionScale });
    }),
    makeCase("positionScale: queries that grow with their position", { dim: 32 }, (draft) =>
      attention(draft, { nHeads: 4, nKvHeads: 2, headDim: 16, positionScale: { coef: 0.4, floorScale: 3, offset: 1 } }),
    ),
  ],

  takeRows: () => [
    makeCase("takeRows: two buffers, then a sum of what is left", { dim: 32 }, (draft) => {
      const y = linear(draft, draft.matrix({ inDim: 32, outDim: 32 }));
      const [keptX, keptY] = [
        { name: "kept x", dim: 32 },
        { name: "kept y", dim: 32 },
      ];
      draft.steps.push(
        { op: "takeRows", out: keptX, x: draft.x },
        { op: "takeRows", out: keptY, x: y },
        { op: "add", out: keptX, a: keptX, b: keptY, scale: 1 },
      );
      return keptX;
    }),
  ],

  softCap: () => [
    makeCase("softCap: values beyond the cap", { dim: 33, table: { quant: "f32", scale: 20 } }, ({ x, steps }) => {
      steps.push({ op: "softCap", x, cap: 5 });
      return x;
    }),
  ],

  scale: () => [
    makeCase("scale: in place", { dim: 33 }, ({ x, steps }) => {
      steps.push({ op: "scale", x, by: -0.0625 });
      return x;
    }),
  ],
  ...normBuilders,
  ...partBuilders,
  ...compressedBuilders,
  ...recurrentBuilders,
};

/**
 * Cases of recurrent steps, which keep a state of a sequence's last row. Each runs in chunks, together with other
 * sequences.
 */
import type { Buf, Step } from "../../src/engine/program/step.ts";
import { linear, longBatches, makeCase, type Case, type CaseOptions, type Draft } from "./draft.ts";

type RecurrentOp = "causalConv" | "centeredConv" | "previousRow" | "deltaRule" | "wkv" | "selectiveScan";

const project = (draft: Draft, name: string, outDim: number): Buf =>
  linear(draft, draft.matrix({ inDim: draft.x.dim, outDim }), undefined, name);

interface DeltaOptions {
  readonly nHeads: number;
  readonly nKeyHeads: number;
  readonly headDim: number;
  readonly heads: "modulo" | "repeat";
  /** A decay per channel. */
  readonly channels?: boolean;
  readonly bound?: number;
}

function deltaRule(draft: Draft, options: DeltaOptions): Buf {
  const { nHeads, nKeyHeads, headDim, heads, channels = false, bound } = options;
  const { steps, vector } = draft;
  const [q, k] = [project(draft, "q", nKeyHeads * headDim), project(draft, "k", nKeyHeads * headDim)];
  const v = project(draft, "v", nHeads * headDim);
  const width = channels ? nHeads * headDim : nHeads;
  const [alpha, beta] = [project(draft, "alpha", width), project(draft, "beta", nHeads)];
  const out = { name: "out", dim: nHeads * headDim };
  for (const x of [q, k]) steps.push({ op: "l2Norm", out: x, x, run: headDim, eps: 1e-6 });
  const [a, dt] = [vector(nHeads, { mean: -0.3, size: 0.1 }), vector(width, { mean: 0.2 })];
  const shape = { layer: 0, nHeads, nKeyHeads, headDim, heads, scale: 1.7, ...(bound !== undefined && { bound }) };
  steps.push({ op: "deltaRule", out, q, k, v, alpha, beta, a, dt, ...shape });
  return out;
}

interface ScanOptions {
  readonly nHeads: number;
  readonly headDim: number;
  readonly stateDim: number;
  readonly nGroups: number;
  /** Decays per value of the state, as in Mamba 1. */
  readonly perState?: boolean;
}

function selectiveScan(draft: Draft, { nHeads, headDim, stateDim, nGroups, perState = false }: ScanOptions): Buf {
  const { steps, vector } = draft;
  const x = project(draft, "values", nHeads * headDim);
  const dt = project(draft, "dt", nHeads);
  const [b, c] = [project(draft, "b", nGroups * stateDim), project(draft, "c", nGroups * stateDim)];
  const out = { name: "out", dim: nHeads * headDim };
  const inDim = perState ? stateDim : 1;
  const rows = vector(nHeads * inDim, { mean: -0.6, size: 0.15 });
  const a = { ...rows, inDim, outDim: nHeads, tensorRows: nHeads };
  const weights = { dtB: vector(nHeads), a, d: vector(nHeads, { mean: 1 }) };
  steps.push({ op: "selectiveScan", out, x, dt, b, c, ...weights, layer: 0, nHeads, headDim, stateDim, nGroups });
  return out;
}

type Wkv = Extract<Step, { op: "wkv" }>;
interface WkvOptions extends Pick<Wkv, "nHeads" | "nKeyHeads" | "headDim" | "bound" | "early" | "complement"> {
  readonly removes?: boolean;
}

function wkv(draft: Draft, { removes = false, ...shape }: WkvOptions): Buf {
  const [dim, keyDim] = [shape.nHeads * shape.headDim, shape.nKeyHeads * shape.headDim];
  const [r, w, k, v] = ["r", "w", "k", "v"].map((name, i) => project(draft, name, i < 2 ? dim : keyDim)) as [
    Buf,
    Buf,
    Buf,
    Buf,
  ]; // one per name
  const out = { name: "out", dim };
  if (!removes) {
    draft.steps.push({ op: "wkv", out, r, w, k, v, layer: 0, ...shape });
    return out;
  }
  const [a, b] = [project(draft, "a", dim), project(draft, "b", dim)];
  draft.steps.push(
    { op: "l2Norm", out: a, x: a, run: shape.headDim, eps: 1e-6 },
    { op: "multiply", out: b, a, b, act: "sigmoid" },
    { op: "wkv", out, r, w, k, v, a, b, layer: 0, ...shape },
  );
  return out;
}

const long: CaseOptions = { dim: 24, ctxLen: 120, batches: longBatches(100) };

export const recurrentBuilders: Readonly<Record<Extract<Step["op"], RecurrentOp>, () => Case[]>> = {
  causalConv: () =>
    (
      [
        ["two taps", { taps: 2 }],
        ["three taps, in place", { taps: 3, inPlace: true }],
        ["three taps, a bias", { taps: 3, bias: true }],
        ["four taps, a bias, silu", { taps: 4, bias: true, act: "silu" }],
      ] as const
    ).flatMap(([name, { taps, ...more }]) =>
      [{ dim: 33 }, { ...long, dim: 33 }].map((sizes) =>
        makeCase(`causalConv: ${name}${"ctxLen" in sizes ? ", long" : ""}`, sizes, ({ x, steps, matrix, vector }) => {
          const out = "inPlace" in more ? x : { name: "y", dim: 33 };
          const w = matrix({ inDim: taps, outDim: 33, size: 0.6 });
          const bias = "bias" in more && { b: vector(33) };
          steps.push({ op: "causalConv", out, x, w, ...bias, ...("act" in more && { act: more.act }), layer: 0 });
          return out;
        }),
      ),
    ),

  centeredConv: () =>
    (
      [
        ["one tap", { taps: 1 }],
        ["three taps", { taps: 3 }],
        ["three taps, a bias, silu", { taps: 3, bias: true, act: "silu" }],
        ["four taps", { taps: 4 }],
        ["five taps, a bias", { taps: 5, bias: true }],
      ] as const
    ).map(([name, { taps, ...more }]) =>
      makeCase(`centeredConv: ${name}`, { dim: 70 }, ({ x, steps, matrix, vector }) => {
        const out = { name: "y", dim: 70 };
        const w = matrix({ inDim: taps, outDim: 70, size: 0.6 });
        const bias = "bias" in more && { b: vector(70) };
        steps.push({ op: "centeredConv", out, x, w, ...bias, ...("act" in more && { act: more.act }) });
        return out;
      }),
    ),

  previousRow: () =>
    [{ dim: 33 }, { ...long, dim: 70 }].map((sizes) =>
      makeCase(`previousRow: ${sizes.dim} values`, sizes, ({ x, steps }) => {
        const out = { name: "previous", dim: x.dim };
        steps.push({ op: "previousRow", out, x, layer: 0 });
        return out;
      }),
    ),

  wkv: () => [
    ...(
      [
        ["RWKV 6", { nHeads: 3, nKeyHeads: 3, headDim: 12, early: true }],
        ["RWKV 6 on two keys", { nHeads: 4, nKeyHeads: 2, headDim: 16, complement: true }],
        ["RWKV 7", { nHeads: 2, nKeyHeads: 2, headDim: 20, bound: -0.606531, removes: true }],
        ["every feature", { nHeads: 2, nKeyHeads: 1, headDim: 5, early: true, complement: true, removes: true }],
      ] as const
    ).map(([name, options]) => makeCase(`wkv: ${name}`, { dim: 32 }, (draft) => wkv(draft, options))),
    makeCase("wkv: a long sequence", long, (draft) =>
      wkv(draft, { nHeads: 2, nKeyHeads: 2, headDim: 64, bound: -0.606531, removes: true }),
    ),
  ],

  deltaRule: () => [
    ...(
      [
        ["one head", { nHeads: 1, nKeyHeads: 1, headDim: 8, heads: "modulo" }],
        ["four heads on two keys in turn", { nHeads: 4, nKeyHeads: 2, headDim: 16, heads: "modulo" }],
        ["four heads on two keys in runs", { nHeads: 4, nKeyHeads: 2, headDim: 16, heads: "repeat" }],
        ["a decay of each channel", { nHeads: 3, nKeyHeads: 3, headDim: 12, heads: "modulo", channels: true }],
        ["a bound", { nHeads: 2, nKeyHeads: 2, headDim: 12, heads: "repeat", channels: true, bound: -2 }],
      ] as const
    ).map(([name, options]) => makeCase(`deltaRule: ${name}`, { dim: 32 }, (draft) => deltaRule(draft, options))),
    makeCase("deltaRule: a long sequence", long, (draft) =>
      deltaRule(draft, { nHeads: 2, nKeyHeads: 1, headDim: 16, heads: "modulo" }),
    ),
  ],

  selectiveScan: () => [
    ...(
      [
        [
          "heads of one value, decays of each state",
          { nHeads: 20, headDim: 1, stateDim: 8, nGroups: 1, perState: true },
        ],
        ["four heads in two groups", { nHeads: 4, headDim: 8, stateDim: 16, nGroups: 2 }],
        ["three heads in one group", { nHeads: 3, headDim: 5, stateDim: 6, nGroups: 1 }],
      ] as const
    ).map(([name, options]) =>
      makeCase(`selectiveScan: ${name}`, { dim: 32 }, (draft) => selectiveScan(draft, options)),
    ),
    makeCase("selectiveScan: a long sequence", long, (draft) =>
      selectiveScan(draft, { nHeads: 2, headDim: 8, stateDim: 8, nGroups: 1 }),
    ),
  ],
};

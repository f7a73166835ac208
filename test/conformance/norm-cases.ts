/** The cases of norms: rows and heads of every length, with and without weights. */
import type { Buf, Step } from "../../src/engine/program/step.ts";
import { gatedMlp, linear, makeCase, moe, type Case, type Draft } from "./draft.ts";

type NormOp = "rmsNorm" | "bareRmsNorm" | "l2Norm" | "layerNorm" | "bareLayerNorm";

/** Lengths of rows, and of the runs that are normed separately. */
const RUNS = [
  [1, 1],
  [64, 64],
  [96, 16],
  [257, 257],
] as const;

const bareCases = (op: "bareRmsNorm" | "l2Norm"): Case[] =>
  RUNS.map(([dim, run]) =>
    makeCase(`${op}: rows of ${dim} by ${run}`, { dim }, ({ x, steps }) => {
      const out = { name: "y", dim };
      steps.push({ op, out, x, run, eps: 1e-5 }, { op, out, x: out, run, eps: 1e-5 });
      return out;
    }),
  );

const partsCase = (op: "rmsNorm" | "layerNorm"): Case =>
  makeCase(`${op}: four parts of a row, a weight for each`, { dim: 96 }, ({ x, steps, matrix }) => {
    const w = matrix({ inDim: 24, outDim: 4, size: 1 });
    steps.push({ op, out: x, x, w, eps: 1e-5 });
    return x;
  });

export const normBuilders: Readonly<Record<Extract<Step["op"], NormOp>, () => Case[]>> = {
  bareRmsNorm: () => bareCases("bareRmsNorm"),

  l2Norm: () => bareCases("l2Norm"),

  bareLayerNorm: () =>
    [1, 31, 257].map((dim) =>
      makeCase(`bareLayerNorm: rows of ${dim}`, { dim }, ({ x, steps }) => {
        const out = { name: "y", dim };
        steps.push({ op: "bareLayerNorm", out, x, eps: 1e-5 }, { op: "add", out, a: out, b: x, scale: 1 });
        return out;
      }),
    ),

  rmsNorm: () => [
    partsCase("rmsNorm"),
    ...[1, 31, 64, 257].map((dim) =>
      makeCase(`rmsNorm: rows of ${dim}`, { dim }, ({ x, steps, vector }) => {
        const out = { name: "y", dim };
        steps.push({ op: "rmsNorm", out, x, w: vector(dim, { mean: 1 }), eps: 1e-5 });
        return out;
      }),
    ),
    makeCase("rmsNorm: heads of a row, in place", { dim: 96 }, ({ x, steps, vector }) => {
      steps.push({ op: "rmsNorm", out: x, x, w: vector(16, { mean: 1 }), eps: 1e-6 });
      return x;
    }),
    ...([33, 64, 257] as const).flatMap((dim) =>
      ["none", "some", "all"].map((biases) =>
        makeCase(`rmsNorm: before three products of rows of ${dim}, ${biases} with biases`, { dim }, (draft) => {
          const { x, steps, matrix, vector } = draft;
          const h = { name: "h", dim };
          steps.push({ op: "rmsNorm", out: h, x, w: vector(dim, { mean: 1 }), eps: 1e-5 });
          const [a, b, c] = [0, 1, 2].map((i) => {
            const bias = biases === "all" || (biases === "some" && i === 1) ? vector(21) : undefined;
            return linear({ ...draft, x: h }, matrix({ inDim: dim, outDim: 21 }), bias, `y${i}`);
          }) as [Buf, Buf, Buf]; // one per number
          steps.push({ op: "add", out: a, a, b, scale: 2 }, { op: "add", out: a, a, b: c, scale: -3 });
          return a;
        }),
      ),
    ),
    makeCase("rmsNorm: before an MLP, experts, and a sum that reads it too", { dim: 64 }, (draft) => {
      const { x, steps, vector } = draft;
      const normed = (name: string): Draft => {
        const h = { name, dim: 64 };
        steps.push({ op: "rmsNorm", out: h, x, w: vector(64, { mean: 1 }), eps: 1e-5 });
        return { ...draft, x: h };
      };
      const add = (b: Buf): number => steps.push({ op: "add", out: x, a: x, b, scale: 1 });
      add(gatedMlp(normed("h1"), { dim: 64, ffnDim: 96, act: "silu" }));
      add(moe(normed("h2"), { experts: 4, nUsed: 2, normalize: true, scale: 1 }));
      const last = normed("h3");
      add(gatedMlp(last, { dim: 64, ffnDim: 96, act: "silu" }));
      add(last.x);
      return x;
    }),
    makeCase("rmsNorm: of a product, added to what there was", { dim: 65 }, (draft) => {
      const { x, steps, vector } = draft;
      const y = linear(draft, draft.matrix({ inDim: 65, outDim: 65 }));
      steps.push(
        { op: "rmsNorm", out: y, x: y, w: vector(65, { mean: 1 }), eps: 1e-5 },
        { op: "add", out: x, a: x, b: y, scale: -0.4 },
      );
      return x;
    }),
    makeCase("rmsNorm: zeros stay zeros", { dim: 32, table: { quant: "f32", scale: 0 } }, ({ x, steps, vector }) => {
      steps.push({ op: "rmsNorm", out: x, x, w: vector(32), eps: 1e-5 });
      return x;
    }),
  ],

  layerNorm: () => [
    partsCase("layerNorm"),
    ...[1, 31, 64, 257].map((dim) =>
      makeCase(`layerNorm: rows of ${dim}`, { dim }, ({ x, steps, vector }) => {
        const out = { name: "y", dim };
        steps.push({ op: "layerNorm", out, x, w: vector(dim, { mean: 1 }), b: vector(dim), eps: 1e-5 });
        return out;
      }),
    ),
    makeCase("layerNorm: in place, without a bias, of a sum", { dim: 96 }, (draft) => {
      const { x, steps, vector } = draft;
      const y = linear(draft, draft.matrix({ inDim: 96, outDim: 96 }));
      steps.push(
        { op: "add", out: x, a: x, b: y, scale: 1 },
        { op: "layerNorm", out: x, x, w: vector(96, { mean: 1 }), eps: 1e-12 },
        { op: "add", out: x, a: x, b: y, scale: 1 },
      );
      return x;
    }),
  ],
};

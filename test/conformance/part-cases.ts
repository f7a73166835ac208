/** The cases of steps that work value by value or move values: products, limits, parts of rows, heads. */
import type { Activation, Buf, Step } from "../../src/engine/program/step.ts";
import { evenBatches, linear, makeCase, type Case, type Draft } from "./draft.ts";

type PartOp =
  | "headLinear"
  | "multiply"
  | "activate"
  | "clamp"
  | "slice"
  | "join"
  | "multiplyVector"
  | "matchLength"
  | "keepLargest";

const ACTIVATIONS: readonly Activation[] = [
  "silu",
  "gelu",
  "gelu_erf",
  "relu",
  "relu_sqr",
  "sigmoid",
  "tanh",
  "softplus",
  "elu",
];

/** Two products of x, to be joined. */
function two(draft: Draft, [first, second]: readonly [number, number]): [Buf, Buf] {
  const { dim: inDim } = draft.x;
  const a = linear(draft, draft.matrix({ inDim, outDim: first }), undefined, "a");
  return [a, linear(draft, draft.matrix({ inDim, outDim: second }), undefined, "b")];
}

export const partBuilders: Readonly<Record<Extract<Step["op"], PartOp>, () => Case[]>> = {
  headLinear: () => [
    ...([false, true] as const).flatMap((transposed) =>
      (["f32", "q8_0"] as const).map((quant) =>
        makeCase(
          `headLinear: ${transposed ? "transposed, " : ""}${quant}, 3 heads`,
          { dim: transposed ? 60 : 96 },
          ({ x, steps, matrix }) => {
            const w = matrix({ inDim: 32, outDim: 20, experts: 3, quant });
            const out = { name: "y", dim: transposed ? 96 : 60 };
            steps.push({ op: "headLinear", out, x, w, transposed });
            return out;
          },
        ),
      ),
    ),
    ...[false, true].map((transposed) =>
      makeCase(
        `headLinear: ${transposed ? "transposed, " : ""}a part of a fused tensor, long rows, with factors`,
        { dim: 2 * (transposed ? 300 : 520), ctxLen: 40, batches: evenBatches([4, 35]) },
        ({ x, steps, matrix }) => {
          const fused = matrix({ inDim: 520, outDim: 310, experts: 2, quant: "f16" });
          const w = { ...fused, outDim: 300, rowStart: 10, scale: Float32Array.of(0.5, -2) };
          const out = { name: "y", dim: 2 * (transposed ? 520 : 300) };
          steps.push({ op: "headLinear", out, x, w, transposed });
          return out;
        },
      ),
    ),
  ],

  multiply: () => [
    ...([undefined, ...ACTIVATIONS] as const).map((act) =>
      makeCase(`multiply: by ${act ?? "itself"}`, { dim: 48 }, (draft) => {
        const [a, b] = two(draft, [65, 65]);
        draft.steps.push({ op: "multiply", out: a, a, b, ...(act && { act }) });
        return a;
      }),
    ),
    ...([1, 4] as const).map((width) =>
      makeCase(`multiply: ${width} values meet a row of 64`, { dim: 48 }, (draft) => {
        const [a, b] = two(draft, [64, width]);
        const out = { name: "out", dim: 64 };
        draft.steps.push({ op: "multiply", out, a, b, act: "sigmoid" }, { op: "add", out, a: out, b: a, scale: 1 });
        return out;
      }),
    ),
    makeCase("multiply: into the second, many rows of both kinds", { dim: 48 }, (draft) => {
      const [a, b] = two(draft, [48, 48]);
      draft.steps.push({ op: "multiply", out: b, a, b, act: "silu" });
      return b;
    }),
  ],

  activate: () =>
    ACTIVATIONS.map((act) =>
      makeCase(`activate: ${act}`, { dim: 65 }, ({ x, steps }) => {
        steps.push({ op: "activate", x, act });
        return x;
      }),
    ),

  clamp: () =>
    (
      [
        [-0.5, 0.5],
        [-0.25, 0.75],
        [0.1, Infinity],
        [-Infinity, -0.1],
      ] as const
    ).map(([min, max]) =>
      makeCase(`clamp: to ${min} … ${max}`, { dim: 65 }, ({ x, steps }) => {
        steps.push({ op: "clamp", x, min, max });
        return x;
      }),
    ),

  multiplyVector: () =>
    (
      [
        [65, false],
        [65, true],
        [5, false],
        [1, true],
      ] as const
    ).map(([len, divide]) =>
      makeCase(`multiplyVector: 65 values ${divide ? "by" : "times"} ${len}`, { dim: 65 }, ({ x, steps, vector }) => {
        steps.push({ op: "multiplyVector", x, w: vector(len, { mean: 1.5 }), ...(divide && { divide }) });
        return x;
      }),
    ),

  matchLength: () =>
    ([40, 65] as const).map((width) =>
      makeCase(`matchLength: 65 values like ${width}`, { dim: 48 }, (draft) => {
        const [x, like] = two(draft, [65, width]);
        draft.steps.push({ op: "scale", x: like, by: 3 }, { op: "matchLength", x, like });
        return x;
      }),
    ),

  keepLargest: () =>
    ([-0.5, 1.6448536] as const).map((factor) =>
      makeCase(`keepLargest: ${factor} deviations above the mean`, { dim: 97 }, ({ x, steps }) => {
        steps.push({ op: "keepLargest", x, factor });
        return x;
      }),
    ),

  slice: () =>
    (
      [
        [1, 0, 20],
        [1, 44, 20],
        [4, 3, 5],
        [8, 4, 4],
      ] as const
    ).map(([heads, at, count]) =>
      makeCase(`slice: ${count} values from ${at} on of ${heads} parts of 64`, { dim: 64 }, ({ x, steps }) => {
        const out = { name: "y", dim: heads * count };
        steps.push({ op: "slice", out, x, heads, at });
        return out;
      }),
    ),

  join: () =>
    (
      [
        [1, 7, 9],
        [4, 8, 3],
      ] as const
    ).map(([heads, first, second]) =>
      makeCase(`join: ${heads} times ${first} and ${second} values`, { dim: 32 }, (draft) => {
        const [a, b] = two(draft, [heads * first, heads * second]);
        const out = { name: "y", dim: a.dim + b.dim };
        draft.steps.push({ op: "join", out, a, b, heads });
        return out;
      }),
    ),
};

/** The steps of the reference: each against a second computation, written here without its code. */
import { expect, test } from "bun:test";
import { erf } from "../../../../src/engine/backends/cpu/math.ts";
import { makeWeightReader } from "../../../../src/engine/backends/cpu/weights.ts";
import type { Step, Weight } from "../../../../src/engine/program/step.ts";
import { makeRng } from "../../../../src/engine/text/rng.ts";
import { makeWeightBox } from "../../../conformance/weights.ts";
import { expectAll, run } from "./one-step.ts";

test("rmsNorm divides by the root of the mean square plus eps", async () => {
  let w: Weight | undefined;
  const { got, valuesOf } = await run([[3, -4, 0, 12]], (box, x) => {
    w = box.vector(4, { mean: 1 });
    return { steps: [{ op: "rmsNorm", out: x, x, w, eps: 0.25 }], out: x };
  });
  const root = Math.sqrt((9 + 16 + 144) / 4 + 0.25);
  expectAll(
    got,
    valuesOf(w!).map((weight, i) => ([3, -4, 0, 12][i]! / root) * weight),
  );
});

test("moe weighs the chosen experts by their softmax over all, or by their share of the chosen", async () => {
  const x = [0.5, -1, 2];
  for (const normalize of [false, true]) {
    let step: (Step & { op: "moe" }) | undefined;
    const { got, valuesOf } = await run([x], ({ matrix }, input) => {
      step = {
        op: "moe",
        out: { name: "y", dim: 3 },
        x: input,
        router: matrix({ inDim: 3, outDim: 4 }),
        gate: matrix({ inDim: 3, outDim: 2, experts: 4 }),
        up: matrix({ inDim: 3, outDim: 2, experts: 4 }),
        down: matrix({ inDim: 2, outDim: 3, experts: 4 }),
        act: "relu",
        nUsed: 2,
        normalize,
        scale: 3,
      };
      return { steps: [step], out: step.out };
    });
    const times = (m: number[], v: number[]): number[] =>
      Array.from({ length: m.length / v.length }, (_, r) =>
        v.reduce((sum, value, i) => sum + value * m[r * v.length + i]!, 0),
      );
    const logits = times(valuesOf(step!.router), x);
    const total = logits.reduce((sum, logit) => sum + Math.exp(logit), 0);
    const probs = logits.map((logit) => Math.exp(logit) / total);
    const chosen = [0, 1, 2, 3].sort((a, b) => probs[b]! - probs[a]!).slice(0, 2);
    const sum = normalize ? probs[chosen[0]!]! + probs[chosen[1]!]! : 1;
    const expected = [0, 0, 0];
    for (const e of chosen) {
      const part = (w: Weight): number[] => valuesOf(w).slice(e * 6, e * 6 + 6);
      const gate = times(part(step!.gate!), x).map((value) => Math.max(0, value));
      const inner = times(part(step!.up), x).map((value, i) => value * gate[i]!);
      times(part(step!.down), inner).forEach((value, i) => (expected[i]! += (value * 3 * probs[e]!) / sum));
    }
    expectAll(got, expected);
  }
});

test("positionScale, softCap, scale and add follow their formulas", async () => {
  const { got } = await run([[8], [8], [8], [8], [8]], (_, x) => ({
    steps: [{ op: "positionScale", x, coef: 0.5, floorScale: 2, offset: 1 }],
    out: x,
  }));
  expectAll(
    got,
    [0, 1, 1, 2, 2].map((n) => 8 * (1 + 0.5 * Math.log(n + 1))),
  );
  const capped = await run([[1, -50]], (_, x) => ({
    steps: [
      { op: "softCap", x, cap: 4 },
      { op: "scale", x, by: 3 },
      { op: "add", out: x, a: x, b: x, scale: -0.5 },
    ],
    out: x,
  }));
  expectAll(capped.got, [1.5 * 4 * Math.tanh(0.25), 1.5 * 4 * Math.tanh(-12.5)]);
});

test("attention is a softmax over the positions of the window, each head on its own key and value", async () => {
  const rows = [
    [0.3, -1, 2, 0.5],
    [1, 1, -1, 0],
    [0, 2, 0.5, -2],
    [-1, 0.5, 1, 1],
  ];
  const attention = {
    layer: 0,
    nHeads: 4,
    nKvHeads: 2,
    headDim: 1,
    scale: 0.7,
    window: 3,
    softCap: 1.5,
    rope: undefined,
  };
  const [k, v, heads] = [
    { name: "k", dim: 2 },
    { name: "v", dim: 2 },
    { name: "heads", dim: 4 },
  ];
  const weights: Weight[] = [];
  const { got, valuesOf } = await run(rows, ({ matrix }, x) => {
    weights.push(matrix({ inDim: 4, outDim: 2 }), matrix({ inDim: 4, outDim: 2 }));
    return {
      steps: [
        { op: "linear", out: k, x, w: weights[0]! },
        { op: "linear", out: v, x, w: weights[1]! },
        { op: "attention", out: heads, q: x, k, v, ...attention },
      ],
      out: heads,
    };
  });
  const project = (w: Weight, row: number[]): number[] =>
    [0, 1].map((o) => row.reduce((sum, value, i) => sum + value * valuesOf(w)[o * 4 + i]!, 0));
  const [keys, values] = [weights[0]!, weights[1]!].map((w) => rows.map((row) => project(w, row)));
  const expected = rows.flatMap((row, p) =>
    [0, 1, 2, 3].map((head) => {
      const group = head < 2 ? 0 : 1;
      const seen = [0, 1, 2, 3].filter((t) => t <= p && t > p - 3);
      const scores = seen.map((t) => Math.exp(1.5 * Math.tanh((0.7 * row[head]! * keys![t]![group]!) / 1.5)));
      const total = scores.reduce((a, b) => a + b, 0);
      return seen.reduce((sum, t, n) => sum + (scores[n]! / total) * values![t]![group]!, 0);
    }),
  );
  expectAll(got, expected);
});

test("each activation has its textbook value", async () => {
  // gate = up = x: act(x) · x, values from the definitions at high precision.
  const table = {
    silu: [-0.2689414214, 0.7310585786 * 1, 0.9525741268 * 3],
    gelu: [-0.1588080094, 0.8411919906, 2.9963627],
    gelu_erf: [-0.1586552539, 0.8413447461, 2.9959503],
    relu: [0, 1, 3],
    relu_sqr: [0, 1, 9],
  };
  for (const [act, [minusOne, one, three]] of Object.entries(table)) {
    const { got } = await run([[-1], [1], [3]], (box, x) => {
      const w = box.matrix({ inDim: 1, outDim: 1 });
      new Float32Array(box.source.read(w.name).buffer)[0] = 1;
      const out = { name: "y", dim: 1 };
      return { steps: [{ op: "gatedMlp", out, x, gate: w, up: w, down: w, act: act as keyof typeof table }], out };
    });
    expectAll(got, [-minusOne!, one!, 3 * three!]);
  }
});

test("erf agrees with tabulated values", () => {
  // Abramowitz and Stegun, table 7.1.
  const table = [
    [0, 0],
    [0.5, 0.5204998778],
    [1, 0.8427007929],
    [2, 0.995322265],
    [3.5, 0.999999257],
    [5, 1],
  ] as const;
  for (const [x, value] of table) {
    expect(erf(x)).toBeCloseTo(value, 9);
    expect(erf(-x)).toBeCloseTo(-value, 9);
  }
});

test("weights beyond the budget are unpacked at each use and give the same bits", () => {
  const box = makeWeightBox("budget", makeRng(5));
  const w = box.matrix({ inDim: 256, outDim: 100, quant: "q4_K", experts: 2 });
  const step: Step = { op: "linear", out: { name: "y", dim: 100 }, x: { name: "x", dim: 256 }, w };
  const [kept, anew] = [makeWeightReader([step], box.source), makeWeightReader([step], box.source, 1000)];
  expect([kept.cacheBytes, anew.cacheBytes]).toEqual([4 * 256 * 100 * 2, 0]);
  for (const at of [
    { expert: 0, first: 0, count: 64 },
    { expert: 1, first: 64, count: 36 },
  ]) {
    expect(anew.panel(w, at)).toEqual(kept.panel(w, at));
  }
});

test("a factor multiplies every weight of its expert", () => {
  const box = makeWeightBox("factors", makeRng(6));
  const w = box.matrix({ inDim: 32, outDim: 3, quant: "q8_0", experts: 2 });
  const panelOf = (weight: Weight): Float32Array => {
    const step: Step = { op: "linear", out: { name: "y", dim: 3 }, x: { name: "x", dim: 32 }, w: weight };
    return makeWeightReader([step], box.source).panel(weight, { expert: 1, first: 1, count: 2 });
  };
  expect(panelOf({ ...w, scale: Float32Array.of(9, -0.5) })).toEqual(panelOf(w).map((value) => value * -0.5));
});

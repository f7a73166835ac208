/** A small program with an attention layer between two recurrent ones. */
import type { Program, Rows } from "../../../src/engine/program/backend.ts";
import type { Buf, Step } from "../../../src/engine/program/step.ts";
import { makeRng } from "../../../src/engine/text/rng.ts";
import { attention, linear, plainRope, type Draft } from "../../conformance/draft.ts";
import { makeWeightBox } from "../../conformance/weights.ts";

export const VOCAB = 40;
const DIM = 32;

export const batchOf = (slot: number, start: number, tokens: Int32Array): Rows[] => [
  { slot, start, tokens, logits: "all" },
];

export function hybridProgram(): Program {
  const box = makeWeightBox("hybrid", makeRng(11));
  const [x, logits] = [
    { name: "x", dim: DIM },
    { name: "logits", dim: VOCAB },
  ];
  const table = box.matrix({ inDim: DIM, outDim: VOCAB, size: 1 });
  const steps: Step[] = [{ op: "embed", out: x, table, scale: 1 }];
  const draft: Draft = { ...box, x, steps };
  const conv: Buf = { name: "conv", dim: DIM };
  steps.push(
    { op: "causalConv", out: conv, x, w: box.matrix({ inDim: 4, outDim: DIM, size: 0.5 }), act: "silu", layer: 0 },
    { op: "add", out: x, a: x, b: conv, scale: 1 },
  );
  const attended = attention(draft, { nHeads: 4, nKvHeads: 2, headDim: 8, rope: { ...plainRope, rotaryDim: 8 } });
  steps.push({ op: "add", out: x, a: x, b: attended, scale: 1 });
  const [q, k, v] = ["dq", "dk", "dv"].map((name) =>
    linear(draft, box.matrix({ inDim: DIM, outDim: 16 }), undefined, name),
  ) as [Buf, Buf, Buf]; // one per name
  const [alpha, beta] = ["alpha", "beta"].map((name) =>
    linear(draft, box.matrix({ inDim: DIM, outDim: 2 }), undefined, name),
  ) as [Buf, Buf]; // one per name
  const out = { name: "delta", dim: 16 };
  const rule = { layer: 2, nHeads: 2, nKeyHeads: 2, headDim: 8, heads: "modulo", scale: 1 } as const;
  const [a, dt] = [box.vector(2, { mean: -0.3, size: 0.1 }), box.vector(2)];
  for (const each of [q, k]) steps.push({ op: "l2Norm", out: each, x: each, run: 8, eps: 1e-6 });
  steps.push({ op: "deltaRule", out, q, k, v, alpha, beta, a, dt, ...rule });
  const y = linear({ ...draft, x: v }, box.matrix({ inDim: 16, outDim: DIM }), undefined, "y");
  const z = linear({ ...draft, x: out }, box.matrix({ inDim: 16, outDim: DIM }), undefined, "z");
  steps.push({ op: "add", out: x, a: x, b: y, scale: 1 }, { op: "add", out: x, a: x, b: z, scale: 1 });
  const last = { name: "last", dim: DIM };
  steps.push({ op: "takeRows", out: last, x });
  steps.push({ op: "linear", out: logits, x: last, w: box.matrix({ inDim: DIM, outDim: VOCAB }) });
  const shape = { arch: "hybrid", dim: DIM, nLayers: 3, vocabSize: VOCAB };
  return { shape, steps, logits, states: last, weights: box.source };
}

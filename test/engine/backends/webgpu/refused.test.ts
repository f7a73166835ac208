/** Shapes that no GPU kernel takes are refused before anything is allocated, with both numbers: found and largest. */
import { expect, test } from "bun:test";
import { lower } from "../../../../kernels/wgsl/lower.ts";
import type { Step } from "../../../../src/engine/program/step.ts";
import { makeRng } from "../../../../src/engine/text/rng.ts";
import { attention, changed, moe, type Draft } from "../../../conformance/draft.ts";
import { makeWeightBox } from "../../../conformance/weights.ts";

const piecesOf = ({ tensorRows, experts }: { tensorRows: number; experts: number }) => [
  { index: 0, first: 0, count: tensorRows * experts },
];

/** Lowers the steps that `build` adds, for few rows and for many. */
function lowered(build: (draft: Draft) => unknown): () => void {
  const steps: Step[] = [];
  build({ ...makeWeightBox("refused", makeRng(1)), x: { name: "x", dim: 32 }, steps });
  return () => {
    for (const isGemm of [true, false]) lower(steps, { ctxLen: 64, isGemm, piecesOf });
  };
}

test("keys and values too large for workgroup memory are refused with both sizes", () => {
  const heads = (headDim: number, valueDim: number) =>
    lowered((draft) => attention(draft, { nHeads: 1, nKvHeads: 1, headDim, valueDim }));
  expect(heads(640, 512)).not.toThrow();
  expect(heads(641, 512)).toThrow("keys and values of 641 and 512: the GPU kernels take 640 and 512");
  expect(heads(512, 513)).toThrow("keys and values of 512 and 513");
});

test("routers with more outputs or groups than workgroup memory holds are refused", () => {
  const routed = (experts: number, count: number) =>
    lowered((draft) => {
      moe(draft, { experts, nUsed: 2, normalize: true, scale: 1 });
      const step = draft.steps.pop() as Extract<Step, { op: "moe" }>; // the last step
      draft.steps.push({ ...step, routing: { score: "sigmoid", groups: { count, used: 1 } } });
    });
  expect(routed(512, 128)).not.toThrow();
  expect(routed(513, 1)).toThrow("513 experts: the GPU kernels take at most 512");
  expect(routed(258, 129)).toThrow("129 groups of experts: the GPU kernels take at most 128");
});

test("low-rank changes of a transposed matrix per head are refused by tensor", () => {
  const product = (transposed: boolean) =>
    lowered((draft) => {
      const w = changed(draft, draft.matrix({ inDim: 16, outDim: 16, experts: 2 }));
      draft.steps.push({ op: "headLinear", out: { name: "y", dim: 32 }, x: draft.x, w, transposed });
    });
  expect(product(false)).not.toThrow();
  expect(product(true)).toThrow(/tensor 'w\d+\.weight': the GPU kernels take no adapters of heads/);
});

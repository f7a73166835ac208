/** Cases of mixtures of experts beyond the plain one: selection, weights and gates. */
import type { Step } from "../../src/engine/program/step.ts";
import { makeCase, moe, VOCAB, type Case, type Draft } from "./draft.ts";

type Moe = Extract<Step, { op: "moe" }>;
/** Eight experts allow groups. */
const EXPERTS = 8;

/** The plain mixture with some of its members changed. */
const variant = (name: string, change: (draft: Draft, step: Moe) => Partial<Moe>): Case =>
  makeCase(`moe: ${name}`, { dim: 32 }, (draft) => {
    const out = moe(draft, { experts: EXPERTS, nUsed: 3, normalize: true, scale: 1.5 });
    const step = draft.steps.pop() as Moe; // the last step
    const changed = change(draft, step);
    draft.steps.push({ ...step, ...changed });
    return out;
  });

/** A bias of each expert. */
const biases = ({ matrix }: Draft, len: number) => matrix({ inDim: len, outDim: 1, experts: EXPERTS, size: 0.3 });

export const moeVariantCases = (): Case[] => [
  variant("sigmoid scores", () => ({ routing: { score: "sigmoid" } })),
  variant("square roots of softplus", ({ vector }) => ({
    routing: { score: "sqrt_softplus" },
    selectB: vector(EXPERTS),
  })),
  variant("chosen before, one twice", ({ steps }) => {
    const chosen = { name: "found", dim: 3 };
    const values = Float32Array.from({ length: VOCAB * 3 }, (_, i) => (i * 5 + (i >> 3)) % EXPERTS);
    values.set([2, 2, 7], 9);
    steps.push({ op: "lookup", out: chosen, values });
    return { chosen, routing: { score: "sqrt_softplus" } };
  }),
  variant("sigmoid scores as they are", () => ({ routing: { score: "sigmoid" }, normalize: false })),
  variant("softmax of the chosen, biases everywhere, swiglu_oai", (draft, { up, down }) => ({
    routing: { score: "softmax_chosen" },
    normalize: false,
    act: "swiglu_oai",
    routerB: draft.vector(EXPERTS),
    gateB: biases(draft, up.outDim),
    upB: biases(draft, up.outDim),
    downB: biases(draft, down.outDim),
  })),
  variant("chosen with a bias, from the best two of four groups", ({ vector }) => ({
    routing: { score: "sigmoid", groups: { count: 4, used: 2 } },
    selectB: vector(EXPERTS),
  })),
  variant("limits of gates", () => ({ limit: { gate: 0.2, up: 0.3 } })),
  variant("soft limits of gates", () => ({ limit: { gate: 0.2, up: 0.3, soft: true } })),
  variant("two outputs of the router for each expert", ({ matrix }) => ({
    router: matrix({ inDim: 32, outDim: 2 * EXPERTS }),
    routing: { score: "softmax", perExpert: 2 },
  })),
  variant("chosen with a bias", ({ vector }) => ({ routing: { score: "softmax" }, selectB: vector(EXPERTS) })),
  variant("inputs weighted, not outputs", () => ({
    routing: { score: "sigmoid", weighInput: true },
    normalize: false,
  })),
  variant("a router that reads another buffer", (draft) => {
    // no rounding before it: the choice must not depend on a backend's precision
    const routed = { name: "routed", dim: 32 };
    draft.steps.push({ op: "rmsNorm", out: routed, x: draft.x, w: draft.vector(32, { mean: 1 }), eps: 1e-5 });
    return { routed };
  }),
  ...(["relu_sqr", "gelu_erf"] as const).map((act) =>
    makeCase(`moe: no gate, ${act}`, { dim: 32 }, (draft) => {
      const out = moe(draft, { experts: EXPERTS, nUsed: 2, normalize: false, scale: 1 });
      const { gate: _, ...step } = draft.steps.pop() as Moe; // the last step
      draft.steps.push({ ...step, act });
      return out;
    }),
  ),
  variant("gate and up of one fused tensor", ({ matrix }, { up }) => {
    const fused = matrix({ inDim: 32, outDim: 2 * up.outDim, experts: EXPERTS });
    return { gate: { ...fused, outDim: up.outDim }, up: { ...fused, outDim: up.outDim, rowStart: up.outDim } };
  }),
];

/** Mixture of experts of the reference. Order of operations: `build_moe_ffn`, llama-graph.cpp. */
import type { Routing, Step } from "../../program/step.ts";
import { activateAll, activations, gateInPlace, matmul, vector } from "./math.ts";
import { rowOf, type Matrix, type Pass } from "./pass.ts";

type Moe = Extract<Step, { op: "moe" }>;

/** An expert chosen for a row, and the weight of its output. */
interface Choice {
  readonly expert: number;
  readonly weight: number;
}

export function moe(step: Moe, pass: Pass): void {
  const input = pass.get(step.x);
  const out = pass.make(step.out, input.rows);
  const router = pass.make({ name: "moe.router", dim: step.router.outDim }, input.rows);
  matmul(router, pass.get(step.routed ?? step.x), { w: step.router, b: step.routerB }, pass);
  const bias = step.selectB && vector(step.selectB, pass).slice();
  const chosen = step.chosen && pass.get(step.chosen);
  for (let r = 0; r < input.rows; r++) {
    const logits = router.data.subarray(r * router.dim, (r + 1) * router.dim);
    const own = chosen && rowOf(chosen, r).data;
    runExperts({ x: rowOf(input, r), out: rowOf(out, r) }, chooseExperts(logits, { bias, own }, step), step, pass);
  }
}

/**
 * The experts with the best scores, best first (the lower index on a tie), and their weights.
 * @param own the row's experts, if they were chosen before
 */
function chooseExperts(
  logits: Float32Array,
  { bias, own }: { bias: Float32Array | undefined; own: Float32Array | undefined },
  step: Moe,
): Choice[] {
  const { nUsed, normalize, scale, routing = { score: "softmax" } } = step;
  const scores = scoresOf(logits, routing);
  const scoresForChoice = keepGroups(
    scores.map((score, expert) => score + (bias?.[expert] ?? 0)),
    routing,
  );
  const ranked = [...scoresForChoice.keys()].sort((a, b) => scoresForChoice[b]! - scoresForChoice[a]!);
  const { perExpert = 1 } = routing;
  const chosen = own ? [...own] : ranked.slice(0, nUsed).map((output) => Math.floor(output / perExpert));
  const weights = chosen.map((expert) => scores[expert]!);
  const shares = routing.score === "softmax_chosen" ? softmax(weights) : weights;
  // The smallest normal float16 keeps the division finite.
  const sum = Math.max(
    shares.reduce((a, b) => a + b, 0),
    2 ** -14,
  );
  return chosen.map((expert, i) => ({ expert, weight: (normalize ? shares[i]! / sum : shares[i]!) * scale }));
}

function scoresOf(logits: Float32Array, { score }: Routing): number[] {
  if (score === "softmax_chosen") return [...logits];
  if (score === "sqrt_softplus") return Array.from(logits, (logit) => Math.sqrt(activations.softplus(logit)));
  return score === "sigmoid" ? Array.from(logits, activations.sigmoid) : softmax([...logits]);
}

function softmax(logits: readonly number[]): number[] {
  const max = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const exps = logits.map((logit) => Math.exp(logit - max));
  const total = exps.reduce((a, b) => a + b, 0);
  return exps.map((exp) => exp / total);
}

/** Scores of experts outside the best groups become −Infinity. */
function keepGroups(scores: readonly number[], { groups }: Routing): readonly number[] {
  if (!groups) return scores;
  const size = scores.length / groups.count;
  const sums = Array.from({ length: groups.count }, (_, group) => {
    const [first = 0, second = 0] = scores.slice(group * size, (group + 1) * size).sort((a, b) => b - a);
    return first + second;
  });
  const kept = new Set([...sums.keys()].sort((a, b) => sums[b]! - sums[a]!).slice(0, groups.used));
  return scores.map((score, expert) => (kept.has(Math.floor(expert / size)) ? score : -Infinity));
}

/** Runs one row through its experts and sums their weighted outputs. */
function runExperts({ x, out }: { x: Matrix; out: Matrix }, chosen: readonly Choice[], step: Moe, pass: Pass): void {
  const up = pass.make({ name: "moe.up", dim: step.up.outDim }, 1);
  const down = pass.make({ name: "moe.down", dim: step.down.outDim }, 1);
  const sums = new Float64Array(out.dim);
  const before = step.routing?.weighInput === true;
  for (const { expert, weight } of chosen) {
    const input = before ? weighed(x, weight, pass) : x;
    matmul(up, input, { w: step.up, b: step.upB, expert }, pass);
    if (step.gate) {
      const gate = pass.make({ name: "moe.gate", dim: step.gate.outDim }, 1);
      matmul(gate, input, { w: step.gate, b: step.gateB, expert }, pass);
      gateInPlace(up, gate, step);
    } else if (step.act !== "swiglu_oai") activateAll(up, step.act);
    matmul(down, up, { w: step.down, b: step.downB, expert }, pass);
    for (let i = 0; i < out.dim; i++) sums[i]! += (before ? 1 : weight) * down.data[i]!;
  }
  out.data.set(sums);
}

function weighed(x: Matrix, weight: number, pass: Pass): Matrix {
  const out = pass.make({ name: "moe.weighed", dim: x.dim }, 1);
  for (let i = 0; i < x.dim; i++) out.data[i] = x.data[i]! * weight;
  return out;
}

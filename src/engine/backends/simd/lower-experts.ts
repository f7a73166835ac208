/** Lowers a mixture of experts to records: scores, sorting rows by expert, their products, and the weighted sum. */
import { SCORES } from "../../../../kernels/simd/layout.ts";
import type { Ops, Step, Weight } from "../../program/step.ts";
import { expertProducts, gate, linear, type Groups, type Lowering } from "./lowering.ts";
import type { Activation } from "./records.ts";
import { groupWords, wordsOf } from "./streaming/streamed-layers.ts";

type Moe = Extract<Step, { op: "moe" }>;

/** The experts and weights of each row, and the rows of each expert. */
interface Choice {
  readonly shares: number;
  readonly groups: Groups;
}

export const expertOps: Pick<Ops<void, Lowering>, "moe"> = {
  moe(step, lowering) {
    const { list } = lowering;
    const { nUsed: used, act, up, down, gate: gateW, routing } = step;
    const rows = { rowSet: list.get(step.x).rowSet, perRow: used };
    const { shares, groups } = choose(step, lowering);
    const make = (name: string, dim: number): Activation => list.make({ name, dim }, rows);
    let x = list.get(step.x);
    if (routing?.weighInput) {
      const weighed = make("moe.weighed", x.dim);
      list.add("weigh", x, { x: x.address, shares, out: weighed.address, n: x.dim, used });
      x = weighed;
    }
    const upward = { w: up, b: step.upB, out: make("moe.up", up.outDim) };
    const gated = gateW && { w: gateW, b: step.gateB, out: make("moe.gate", up.outDim) };
    const inward = expertProducts(x, gated ? [gated, upward] : [upward], groups, lowering);
    const inner = (gated ?? upward).out;
    if (gated || act !== "swiglu_oai") gate({ gate: inner, up: gated && upward.out, act, limit: step.limit }, lowering);
    const outward = make("moe.down", down.outDim);
    const last = expertProducts(inner, [{ w: down, b: step.downB, out: outward }], groups, lowering);
    const records = [inward, last].filter((record) => record !== undefined);
    if (records.length > 0) lowering.streamed.push({ groups: groups.words, experts: up.experts, records });
    const y = list.make(step.out, list.get(step.x));
    const weights = routing?.weighInput ? 0 : shares;
    list.add("combine", y, { x: outward.address, shares: weights, out: y.address, dim: step.out.dim, used });
  },
};

function choose(step: Moe, lowering: Lowering): Choice {
  const { list, buffers, memory, maxRows, weights } = lowering;
  const { router, routerB, selectB, nUsed: used, normalize, scale, routing } = step;
  const experts = router.outDim;
  // Scores, selection scores, and counts of both kinds of rows twice.
  lowering.scratchFloats = Math.max(lowering.scratchFloats, 6 * experts);
  const out = { name: "moe.router", dim: experts };
  const logits = linear(step.routed ?? step.x, { out, w: router, b: routerB }, lowering);
  const chosen = buffers.of("moe.chosen", maxRows * used * 4);
  const shares = buffers.of("moe.shares", maxRows * used * 4);
  const block = memory.allocate(groupWords(experts, maxRows * used) * 4, "experts' rows");
  const groups = { address: block.address, words: wordsOf(block) };
  list.add("route", logits, {
    logits: logits.address,
    bias: selectB ? weights.vector(selectB as Weight) : 0,
    given: step.chosen ? list.get(step.chosen).address : 0,
    chosen,
    shares,
    experts,
    used,
    score: SCORES[routing?.score ?? "softmax"],
    perExpert: routing?.perExpert ?? 1,
    groups: routing?.groups?.count ?? 0,
    groupsUsed: routing?.groups?.used ?? 0,
    normalize: normalize ? 1 : 0,
    scale,
  });
  list.add("group", logits, { chosen, groups: groups.address, experts: step.up.experts, used });
  return { shares, groups };
}

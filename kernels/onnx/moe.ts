/**
 * Mixture of experts, sparse: every expert runs on only the rows that chose it, so an unused expert costs next to
 * nothing (its operators see an empty input). The router is float32 in every mode.
 */
import type { Gating, Step, Weight } from "../../src/engine/program/step.ts";
import { activate } from "./activation.ts";
import { setValue, valueOf, type Lowering } from "./lowering.ts";
import { floatMatMul, matMul, stackable, vectorOf } from "./matrix.ts";
import { checkFinite, readRows } from "./pack.ts";
import { limited } from "./parts.ts";

type Moe = Extract<Step, { op: "moe" }>;

/** The smallest normal float16 keeps a division by weights finite. (build_moe_ffn) */
const WEIGHTS_LEAST = 2 ** -14;
/** Subtracted from scores to exclude an expert. */
const NEVER = 1e30;
const OAI_ALPHA = 1.702;
const OAI_LIMIT = 7;

export function moe(step: Moe, lowering: Lowering): void {
  const { graph } = lowering;
  const shaped = valueOf(lowering, step.x);
  const x = graph.node("Reshape", [shaped, graph.ints([1, -1, step.x.dim])]);
  const chosen = route(step, lowering);
  const { weighInput = false } = step.routing ?? {};
  let sum = graph.node("Mul", [
    graph.node("Reshape", [x, graph.ints([-1, step.x.dim])]),
    graph.floats(Float32Array.of(0)),
  ]);
  for (const [expert, weight] of chosen.entries()) {
    const rows = graph.node("Reshape", [graph.node("NonZero", [weight]), graph.ints([-1])]);
    const own = graph.node("Gather", [x, rows], { axis: 1 });
    const share = graph.node("Reshape", [graph.node("Gather", [weight, rows]), graph.ints([-1, 1])]);
    const input = weighInput ? graph.node("Mul", [own, share]) : own;
    const y = graph.node("Reshape", [runExpert(step, lowering, { expert, x: input }), graph.ints([-1, step.out.dim])]);
    const at = graph.node("Reshape", [rows, graph.ints([-1, 1])]);
    const part = weighInput ? y : graph.node("Mul", [y, share]);
    sum = graph.node("ScatterND", [sum, at, part], { reduction: "add" });
  }
  setValue(lowering, step.out, graph.node("Reshape", [sum, graph.node("Shape", [shaped])]));
}

/** Weight of every expert for every row, 0 if not chosen: one value (rows) per expert. */
function route(step: Moe, lowering: Lowering): readonly string[] {
  const { graph } = lowering;
  const experts = step.router.outDim;
  const from = step.routed ?? step.x;
  const x = graph.node("Reshape", [valueOf(lowering, from), graph.ints([1, -1, from.dim])]);
  const logits = graph.node("Reshape", [floatMatMul(lowering, x, step.router), graph.ints([-1, experts])]);
  const { indices, weights } = choose(step, lowering, logits);
  const none = graph.node("ConstantOfShape", [graph.node("Shape", [logits])]);
  const table = graph.node("ScatterElements", [none, indices, weights], { axis: -1 });
  const columns = Array.from({ length: experts }, () => graph.fresh("column"));
  graph.nodes("Split", [table, graph.ints(columns.map(() => 1))], { outputs: columns, attributes: { axis: -1 } });
  return columns.map((column) => graph.node("Reshape", [column, graph.ints([-1])]));
}

/** The experts that each row chooses, and their weights, both (rows, nUsed). */
function choose(step: Moe, lowering: Lowering, logits: string): { indices: string; weights: string } {
  const { graph } = lowering;
  const { score, groups } = step.routing ?? { score: "softmax" };
  const biased = step.routerB ? graph.node("Add", [logits, graph.floats(vectorOf(lowering, step.routerB))]) : logits;
  const scores =
    score === "softmax_chosen"
      ? biased
      : score === "sigmoid"
        ? graph.node("Sigmoid", [biased])
        : graph.node("Softmax", [biased], { axis: -1 });
  let selection = scores;
  if (step.selectB) selection = graph.node("Add", [selection, graph.floats(vectorOf(lowering, step.selectB))]);
  if (groups) selection = keepGroups(lowering, selection, { ...groups, experts: step.router.outDim });
  const values = graph.fresh("share");
  const indices = graph.fresh("expert");
  graph.nodes("TopK", [selection, graph.ints([step.nUsed])], { outputs: [values, indices], attributes: { axis: -1 } });
  let weights = selection === scores ? values : graph.node("GatherElements", [scores, indices], { axis: -1 });
  if (score === "softmax_chosen") weights = graph.node("Softmax", [weights], { axis: -1 });
  if (step.normalize) {
    const sum = graph.node("ReduceSum", [weights, graph.ints([-1])]);
    weights = graph.node("Div", [weights, limited(lowering, sum, [WEIGHTS_LEAST, Infinity])]);
  }
  if (step.scale !== 1) weights = graph.node("Mul", [weights, graph.floats(Float32Array.of(step.scale))]);
  return { indices, weights };
}

/** Makes scores of experts outside the groups with the best sums of their two best too small to be chosen. */
function keepGroups(
  { graph }: Lowering,
  selection: string,
  { count, used, experts }: { count: number; used: number; experts: number },
): string {
  const size = experts / count;
  const grouped = graph.node("Reshape", [selection, graph.ints([-1, count, size])]);
  const [best, group] = [graph.fresh("best"), graph.fresh("group")];
  const attributes = { axis: -1 };
  graph.nodes("TopK", [grouped, graph.ints([Math.min(2, size)])], {
    outputs: [best, graph.fresh("place")],
    attributes,
  });
  const sums = graph.node("ReduceSum", [best, graph.ints([-1])], { keepdims: 0 });
  const top = graph.fresh("top");
  graph.nodes("TopK", [sums, graph.ints([used])], { outputs: [top, group], attributes });
  const zeros = graph.node("Mul", [sums, graph.floats(Float32Array.of(0))]);
  const ones = graph.node("Add", [graph.node("Mul", [top, graph.floats(Float32Array.of(0))]), one(graph)]);
  const kept = graph.node("ScatterElements", [zeros, group, ones], attributes); // 1 for a kept group
  const cost = graph.node("Mul", [graph.node("Sub", [kept, one(graph)]), graph.floats(Float32Array.of(NEVER))]);
  const each = graph.node("Reshape", [cost, graph.ints([-1, count, 1])]);
  return graph.node("Reshape", [graph.node("Add", [grouped, each]), graph.ints([-1, experts])]);
}

const one = (graph: Lowering["graph"]): string => graph.floats(Float32Array.of(1));

/** One expert's row of stacked biases; undefined without biases. */
function biasOf({ source }: Lowering, w: Weight | undefined, expert: number): Float32Array | undefined {
  if (!w) return undefined;
  const values = readRows(source, { w, expert }, { first: 0, count: 1 });
  checkFinite({ source }, w, values);
  return values;
}

function runExpert(step: Moe, lowering: Lowering, { expert, x }: { expert: number; x: string }): string {
  const { graph } = lowering;
  const { gate, up, down, act } = step;
  const [upB, downB] = [biasOf(lowering, step.upB, expert), biasOf(lowering, step.downB, expert)];
  const product = (w: Weight, bias?: Float32Array): string => matMul(lowering, x, [{ w, expert }], bias);
  let inner: string;
  if (!gate) inner = gateless(lowering, act, product(up, upB));
  else {
    const gateB = biasOf(lowering, step.gateB, expert);
    let [gated, raised] = ["", ""];
    if (stackable(lowering, [gate, up]) && !gateB && !upB) {
      const both = matMul(lowering, x, [
        { w: gate, expert },
        { w: up, expert },
      ]);
      [gated, raised] = [graph.fresh("gate"), graph.fresh("up")];
      const sizes = graph.ints([gate.outDim, up.outDim]);
      graph.nodes("Split", [both, sizes], { outputs: [gated, raised], attributes: { axis: -1 } });
    } else [gated, raised] = [product(gate, gateB), product(up, upB)];
    inner = meet(lowering, act, { gate: gated, up: raised });
  }
  return matMul(lowering, inner, [{ w: down, expert }], downB);
}

function gateless(lowering: Lowering, act: Gating, up: string): string {
  if (act === "swiglu_oai") throw new Error("invariant: swiglu_oai without a gate");
  return activate(lowering, act, up);
}

/** Combines gate and up to the input of down. */
export function meet(lowering: Lowering, act: Gating, { gate, up }: { gate: string; up: string }): string {
  const { graph } = lowering;
  if (act !== "swiglu_oai") return graph.node("Mul", [activate(lowering, act, gate), up]);
  const capped = limited(lowering, gate, [-3e38, OAI_LIMIT]);
  const turned = graph.node("QuickGelu", [capped], { alpha: { float: OAI_ALPHA } }); // x · sigmoid(alpha · x)
  return graph.node("Mul", [turned, graph.node("Add", [limited(lowering, up, [-OAI_LIMIT, OAI_LIMIT]), one(graph)])]);
}

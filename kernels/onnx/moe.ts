/**
 * Mixture of experts, sparse: every expert runs on just the rows that chose it, so an expert that nobody chose costs
 * next to nothing (its operators see an empty input). The router is float32 in every mode.
 */
import { plainGating } from "../gating.ts";
import type { Step } from "../../src/backend/step.ts";
import { activate } from "./activation.ts";
import { setValue, valueOf, type Lowering } from "./lowering.ts";
import { floatMatMul, matMul, stackable } from "./matrix.ts";

type Moe = ReturnType<typeof plainGating<Extract<Step, { op: "moe" }>>>;

export function moe(given: Extract<Step, { op: "moe" }>, lowering: Lowering): void {
  const step = plainGating(given);
  const { graph } = lowering;
  const dim = step.x.dim;
  const shaped = valueOf(lowering, step.x);
  const x = graph.node("Reshape", [shaped, graph.ints([1, -1, dim])]);
  const chosen = route(step, lowering, x);
  let sum = graph.node("Mul", [graph.node("Reshape", [x, graph.ints([-1, dim])]), graph.floats(Float32Array.of(0))]);
  for (const [expert, weight] of chosen.entries()) {
    const rows = graph.node("Reshape", [graph.node("NonZero", [weight]), graph.ints([-1])]);
    const own = graph.node("Gather", [x, rows], { axis: 1 });
    const y = graph.node("Reshape", [runExpert(step, lowering, { expert, x: own }), graph.ints([-1, step.out.dim])]);
    const share = graph.node("Reshape", [graph.node("Gather", [weight, rows]), graph.ints([-1, 1])]);
    const at = graph.node("Reshape", [rows, graph.ints([-1, 1])]);
    sum = graph.node("ScatterND", [sum, at, graph.node("Mul", [y, share])], { reduction: "add" });
  }
  setValue(lowering, step.out, graph.node("Reshape", [sum, graph.node("Shape", [shaped])]));
}

/** Weight of every expert for every row, 0 where it was not chosen: one value (rows) per expert. */
function route(step: Moe, lowering: Lowering, x: string): readonly string[] {
  const { graph } = lowering;
  const experts = step.router.outDim;
  const scores = graph.node("Reshape", [floatMatMul(lowering, x, step.router), graph.ints([-1, experts])]);
  const shares = graph.node("Softmax", [scores], { axis: -1 });
  const values = graph.fresh("share");
  const indices = graph.fresh("expert");
  graph.nodes("TopK", [shares, graph.ints([step.nUsed])], { outputs: [values, indices], attributes: { axis: -1 } });
  let weights = values;
  if (step.normalize) weights = graph.node("Div", [values, graph.node("ReduceSum", [values, graph.ints([-1])])]);
  if (step.scale !== 1) weights = graph.node("Mul", [weights, graph.floats(Float32Array.of(step.scale))]);
  const none = graph.node("ConstantOfShape", [graph.node("Shape", [shares])]);
  const table = graph.node("ScatterElements", [none, indices, weights], { axis: -1 });
  const columns = Array.from({ length: experts }, () => graph.fresh("column"));
  graph.nodes("Split", [table, graph.ints(columns.map(() => 1))], { outputs: columns, attributes: { axis: -1 } });
  return columns.map((column) => graph.node("Reshape", [column, graph.ints([-1])]));
}

function runExpert(
  { gate, up, down, act }: Moe,
  lowering: Lowering,
  { expert, x }: { expert: number; x: string },
): string {
  const { graph } = lowering;
  let gated: string;
  let raised: string;
  if (stackable(lowering, [gate, up])) {
    const both = matMul(lowering, x, [
      { w: gate, expert },
      { w: up, expert },
    ]);
    [gated, raised] = [graph.fresh("gate"), graph.fresh("up")];
    const sizes = graph.ints([gate.outDim, up.outDim]);
    graph.nodes("Split", [both, sizes], { outputs: [gated, raised], attributes: { axis: -1 } });
  } else {
    gated = matMul(lowering, x, [{ w: gate, expert }]);
    raised = matMul(lowering, x, [{ w: up, expert }]);
  }
  return matMul(lowering, graph.node("Mul", [activate(lowering, act, gated), raised]), [{ w: down, expert }]);
}

/**
 * Step[] → one ONNX graph. One lowering per step; what several steps can do in one node is found here: projections of
 * one input (q/k/v) become one product, a sum and the norm after it one node, rotations become part of attention.
 */
import type { Program } from "../../src/backend/backend.ts";
import type { Buf, Ops, Step, Weight } from "../../src/backend/step.ts";
import { activate } from "./activation.ts";
import { attention } from "./attention.ts";
import { makeGraph, type WeightFile } from "./graph.ts";
import {
  makeLowering,
  setParts,
  setRope,
  setUnrotated,
  setValue,
  unrotated,
  valueOf,
  type Lowered,
  type Lowering,
} from "./lowering.ts";
import { matMul, stackable, vectorOf } from "./matrix.ts";
import { moe } from "./moe.ts";
import { writeModel, type Graph } from "./proto.ts";

type Linear = Extract<Step, { op: "linear" }>;

export interface LowerOptions {
  readonly file: WeightFile;
  readonly precise: boolean;
  readonly half: Float32Array;
  readonly packed: (weights: number) => void;
}

/**
 * Lowers a program. Packs its weights into the file where that wants them.
 * Graph inputs: `embeds` (batch, tokens, dim); `past` int32 (batch), tokens in the cache before the run's last one;
 * `total` int32, most tokens of any sequence after the run; `rows` int64, which rows' logits are wanted; the caches;
 * and what `Lowered` lists. Output: `logits` (1, rows, vocabSize), and the caches.
 */
export function lower(program: Program, options: LowerOptions): { lowered: Lowered; model: () => Uint8Array } {
  const graph = makeGraph(options.file);
  const lowering = makeLowering(program, { ...options, graph });
  graph.input("embeds", "float", ["batch", "tokens", program.shape.dim]);
  const { steps } = program;
  for (let i = 0; i < steps.length;) i += lowerAt(steps, i, lowering);
  const { embed, ropes, positionScales, positions, caches } = lowering;
  if (!embed) throw new Error("invariant: a program without an embed step");
  if (!lowering.rowsTaken) takeRows(lowering, { out: program.logits, x: program.logits });
  const logits = graph.node("Reshape", [valueOf(lowering, program.logits), graph.ints([-1, program.shape.vocabSize])]);
  const lowered = { embed, ropes, positionScales, positions, caches };
  return { lowered, model: () => writeModel(withLogits(graph.finish(), logits, program.shape.vocabSize)) };
}

/** Gives the logits their name. */
function withLogits(graph: Graph, logits: string, vocabSize: number): Graph {
  const nodes = graph.nodes.map((node) => ({
    ...node,
    outputs: node.outputs.map((name) => (name === logits ? "logits" : name)),
  }));
  return {
    ...graph,
    nodes,
    outputs: [{ name: "logits", type: "float", shape: ["rows", vocabSize] }, ...graph.outputs],
  };
}

/** Lowers the step at `i`, with those after it that it can take along; returns how many were lowered. */
function lowerAt(steps: readonly Step[], i: number, lowering: Lowering): number {
  const step = steps[i]!;
  const next = steps[i + 1];
  if (step.op === "linear") {
    const together = linearsOf(steps, i, lowering);
    linears(together, lowering);
    return together.length;
  }
  if (
    step.op === "add" &&
    step.scale === 1 &&
    next?.op === "rmsNorm" &&
    next.x.name === step.out.name &&
    isRowNorm(next)
  ) {
    addAndNorm(step, next, lowering);
    return 2;
  }
  lowerStep(step, lowering);
  return 1;
}

/** The longest run of linear steps from `i` that read the same input and can be one product. */
function linearsOf(steps: readonly Step[], i: number, lowering: Lowering): readonly Linear[] {
  const first = steps[i] as Linear; // the caller looked
  const out: Linear[] = [first];
  for (let j = i + 1; j < steps.length; j++) {
    const step = steps[j]!;
    if (step.op !== "linear" || step.x.name !== first.x.name) break;
    if (out.some((each) => each.out.name === step.x.name || each.out.name === step.out.name)) break;
    if (!stackable(lowering, [...out.map((each) => each.w), step.w])) break;
    out.push(step);
  }
  return out;
}

function linears(steps: readonly Linear[], lowering: Lowering): void {
  const matrices = steps.map(({ w }) => ({ w, expert: 0 }));
  const value = matMul(lowering, valueOf(lowering, steps[0]!.x), matrices, biasOf(lowering, steps));
  if (steps.length === 1) setValue(lowering, steps[0]!.out, value);
  else
    setParts(
      lowering,
      steps.map((step) => step.out),
      value,
    );
}

/** The biases of several matrices end to end, zeros where one has none; undefined where none has. */
function biasOf(
  lowering: Lowering,
  rows: readonly { readonly w: Weight; readonly b?: Weight }[],
): Float32Array | undefined {
  if (rows.every(({ b }) => b === undefined)) return undefined;
  const out = new Float32Array(rows.reduce((sum, { w }) => sum + w.outDim, 0));
  let at = 0;
  for (const { w, b } of rows) {
    if (b) out.set(vectorOf(lowering, b), at);
    at += w.outDim;
  }
  return out;
}

type RmsNorm = Extract<Step, { op: "rmsNorm" }>;
const isRowNorm = ({ w, x }: RmsNorm): boolean => w.inDim * w.outDim === x.dim;

function addAndNorm(add: Extract<Step, { op: "add" }>, norm: RmsNorm, lowering: Lowering): void {
  const { graph } = lowering;
  const [normed, sum] = [graph.fresh("norm"), graph.fresh("sum")];
  const inputs = [valueOf(lowering, add.a), valueOf(lowering, add.b), graph.floats(vectorOf(lowering, norm.w))];
  graph.nodes("SkipSimplifiedLayerNormalization", inputs, {
    outputs: [normed, "", "", sum],
    attributes: { epsilon: { float: norm.eps } },
  });
  setValue(lowering, add.out, sum);
  setValue(lowering, norm.out, normed);
}

const lowerStep = (step: Step, lowering: Lowering): void => {
  const op = ops[step.op] as (step: Step, lowering: Lowering) => void; // each entry takes the step of its own name
  op(step, lowering);
};

const ops: Ops<void, Lowering> = {
  embed(step, lowering) {
    if (lowering.embed) throw new Error("invariant: a program with two embed steps");
    lowering.embed = step;
    setValue(lowering, step.out, "embeds");
  },
  rmsNorm(step, lowering) {
    const { graph } = lowering;
    const x = valueOf(lowering, step.x);
    const w = graph.floats(vectorOf(lowering, step.w));
    const attributes = { axis: -1, epsilon: { float: step.eps }, stash_type: 1 };
    if (isRowNorm(step))
      return setValue(lowering, step.out, graph.node("SimplifiedLayerNormalization", [x, w], attributes));
    const size = step.w.inDim * step.w.outDim;
    const heads = graph.node("Reshape", [x, graph.ints([0, 0, step.x.dim / size, size])]);
    const normed = graph.node("SimplifiedLayerNormalization", [heads, w], attributes);
    setValue(lowering, step.out, graph.node("Reshape", [normed, graph.ints([0, 0, step.x.dim])]));
  },
  linear: (step, lowering) => linears([step], lowering),
  rope: (step, lowering) => setRope(lowering, step),
  attention,
  gatedMlp(step, lowering) {
    const { graph } = lowering;
    const up = { w: step.up, ...(step.upB ? { b: step.upB } : {}) };
    const gate = { w: step.gate, ...(step.gateB ? { b: step.gateB } : {}) };
    const inner = (name: string): Buf => ({ name: graph.fresh(name), dim: step.up.outDim });
    const [gated, raised] = [inner("gate"), inner("up")];
    const pair: readonly Linear[] = [
      { op: "linear", out: gated, x: step.x, ...gate },
      { op: "linear", out: raised, x: step.x, ...up },
    ];
    if (stackable(lowering, [step.gate, step.up])) linears(pair, lowering);
    else for (const each of pair) linears([each], lowering);
    const product = graph.node("Mul", [
      activate(lowering, step.act, valueOf(lowering, gated)),
      valueOf(lowering, raised),
    ]);
    const bias = step.downB ? vectorOf(lowering, step.downB) : undefined;
    setValue(lowering, step.out, matMul(lowering, product, [{ w: step.down, expert: 0 }], bias));
  },
  moe,
  add(step, lowering) {
    const b = scaled(lowering, valueOf(lowering, step.b), step.scale);
    setValue(lowering, step.out, lowering.graph.node("Add", [valueOf(lowering, step.a), b]));
  },
  positionScale(step, lowering) {
    const { graph, positionScales } = lowering;
    const { op: _, x, ...scale } = step;
    let index = positionScales.findIndex((each) => Bun.deepEquals(each, scale));
    if (index < 0) index = positionScales.push(scale) - 1;
    const factor = graph.input(`position_scale.${index}`, "float", ["batch", "tokens", 1]);
    setUnrotated(lowering, x, graph.node("Mul", [unrotated(lowering, x), factor]));
  },
  takeRows: (step, lowering) => takeRows(lowering, step),
  softCap(step, lowering) {
    const { graph } = lowering;
    const inner = graph.node("Tanh", [scaled(lowering, valueOf(lowering, step.x), 1 / step.cap)]);
    setValue(lowering, step.x, scaled(lowering, inner, step.cap));
  },
  scale(step, lowering) {
    setUnrotated(lowering, step.x, scaled(lowering, unrotated(lowering, step.x), step.by));
  },
};

function takeRows(lowering: Lowering, { out, x }: { out: Buf; x: Buf }): void {
  const { graph } = lowering;
  const rows = graph.input("rows", "int64", ["rows"]);
  const flat = graph.node("Reshape", [valueOf(lowering, x), graph.ints([1, -1, x.dim])]);
  setValue(lowering, out, graph.node("Gather", [flat, rows], { axis: 1 }));
  lowering.rowsTaken = true;
}

function scaled({ graph }: Lowering, value: string, by: number): string {
  return by === 1 ? value : graph.node("Mul", [value, graph.floats(Float32Array.of(by))]);
}

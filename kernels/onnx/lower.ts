/**
 * Step[] → one ONNX graph. One lowering per step; combinations of steps are found here: projections of one input
 * (q/k/v) become one product, a sum and the norm after it one node, RoPE becomes part of attention.
 */
import type { Program } from "../../src/engine/program/backend.ts";
import type { Variant } from "../../src/engine/program/describe.ts";
import type { Buf, Ops, Step, Weight } from "../../src/engine/program/step.ts";
import { activate } from "./activation.ts";
import { attention, bidirectionalAttention } from "./attention.ts";
import { makeGraph, type WeightFile } from "./graph.ts";
import {
  makeLowering,
  positionsInput,
  setParts,
  setRope,
  setUnrotated,
  setValue,
  unrotated,
  valueOf,
  type Lowered,
  type Lowering,
} from "./lowering.ts";
import { gatherRows, matMul, stackable, vectorOf } from "./matrix.ts";
import { meet, moe } from "./moe.ts";
import { norms } from "./norm.ts";
import { partOps } from "./parts.ts";
import { writeModel, type Graph } from "./proto.ts";

type Linear = Extract<Step, { op: "linear" }>;

export interface LowerOptions {
  /** Number of steps that compute the final hidden states. */
  readonly statesEnd: number;
  readonly file: WeightFile;
  readonly precise: boolean;
  /** No state is kept for later runs. */
  readonly encoder: boolean;
  readonly half: Float32Array;
  readonly packed: (weights: number) => void;
}

/**
 * Lowers a program. Packs its weights into the file if `options.file` says so.
 * Graph inputs: `embeds` (batch, tokens, dim); `past` int32 (batch), tokens in the cache before the run's last one;
 * `total` int32, maximum tokens of a sequence after the run; `rows` int64, the wanted rows; `head_rows` int64, the ones
 * among them for the logits; the caches; and the inputs listed in `Lowered`. Outputs: `states` (rows, dim), final
 * hidden states; `logits` (head_rows, vocabSize), if the program has them; and the caches.
 */
export function lower(program: Program, options: LowerOptions): { lowered: Lowered; model: () => Uint8Array } {
  const graph = makeGraph(options.file);
  const lowering = makeLowering(program, { ...options, graph });
  const { steps, states, logits } = program;
  const { statesEnd: end } = options;
  for (let i = 0; i < end;) i += lowerAt(steps.slice(0, end), i, lowering);
  if (!lowering.rowsTaken) takeRows(lowering, { out: states, x: states });
  const results = [resultOf(lowering, "states", states)];
  if (logits) {
    takeHeadRows(lowering, states);
    for (let i = end; i < steps.length;) i += lowerAt(steps, i, lowering);
    results.push(resultOf(lowering, "logits", logits));
  }
  const { embed, ropes, positionScales, positions, lengths, caches } = lowering;
  const lowered = { embed, ropes, positionScales, positions, lengths, caches };
  return { lowered, model: () => writeModel(withResults(graph.finish(), results)) };
}

/** An output of the graph, with its name. */
interface Result {
  readonly name: string;
  readonly value: string;
  readonly dim: number;
}

function resultOf(lowering: Lowering, name: string, buf: Buf): Result {
  const { graph } = lowering;
  return { name, value: graph.node("Reshape", [valueOf(lowering, buf), graph.ints([-1, buf.dim])]), dim: buf.dim };
}

/** Names the outputs. */
function withResults(graph: Graph, results: readonly Result[]): Graph {
  const names = new Map(results.map(({ name, value }) => [value, name]));
  const nodes = graph.nodes.map((node) => ({
    ...node,
    outputs: node.outputs.map((output) => names.get(output) ?? output),
  }));
  const outputs = results.map(({ name, dim }) => ({ name, type: "float", shape: [`${name}_rows`, dim] }) as const);
  return { ...graph, nodes, outputs: [...outputs, ...graph.outputs] };
}

/** Selects the hidden states whose logits are wanted. */
function takeHeadRows(lowering: Lowering, states: Buf): void {
  const { graph } = lowering;
  const rows = graph.input("head_rows", "int64", ["head_rows"]);
  setValue(lowering, states, graph.node("Gather", [valueOf(lowering, states), rows], { axis: 1 }));
}

/** Lowers the step at `i`, together with following steps if possible; returns the number of lowered steps. */
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
  const first = steps[i] as Linear; // the caller has checked
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

/** The concatenated biases of several matrices, with zeros for missing ones; undefined if all are missing. */
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
const isRowNorm = ({ w, x }: RmsNorm): boolean => w.inDim === x.dim;

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

/** Supported variants, see describe.ts. */
export const variants: ReadonlySet<Variant> = new Set<Variant>([
  "attention: sinks",
  "bidirectionalAttention: a bias by distance",
  "rmsNorm: several weights",
  "layerNorm: parts of a row",
  "clamp: uneven limits",
  "gatedMlp: swiglu_oai",
  "moe: no gate",
  "moe: biases",
  "moe: swiglu_oai",
  "moe: a router of its own",
  "moe: routing",
  "sigmoid or tanh",
]);

export const ops: Ops<void, Lowering, "unsupported"> = {
  embed(step, lowering) {
    if (lowering.embed) throw new Error("invariant: a program with two embed steps");
    lowering.embed = step;
    setEmbeds(lowering, step.out);
  },
  input: (step, lowering) => setEmbeds(lowering, step.out),
  ...norms,
  ...partOps,
  linear: (step, lowering) => linears([step], lowering),
  rope: (step, lowering) => setRope(lowering, step),
  attention,
  bidirectionalAttention,
  mlp(step, lowering) {
    const { upB, downB } = step;
    const x = valueOf(lowering, step.x);
    const up = matMul(lowering, x, [{ w: step.up, expert: 0 }], upB && vectorOf(lowering, upB));
    const inner = activate(lowering, step.act, up);
    const down = matMul(lowering, inner, [{ w: step.down, expert: 0 }], downB && vectorOf(lowering, downB));
    setValue(lowering, step.out, down);
  },
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
    const product = meet(lowering, step.act, { gate: valueOf(lowering, gated), up: valueOf(lowering, raised) });
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
  addPosition(step, lowering) {
    const rows = gatherRows(lowering, step.table, positionsInput(lowering));
    setValue(lowering, step.x, lowering.graph.node("Add", [valueOf(lowering, step.x), rows]));
  },
  addVector(step, lowering) {
    const vector = lowering.graph.floats(vectorOf(lowering, step.w));
    setValue(lowering, step.x, lowering.graph.node("Add", [valueOf(lowering, step.x), vector]));
  },
  addGiven: () => {}, // all rows have ids here
  takeRows: (step, lowering) => takeRows(lowering, step),
  headLinear: "unsupported",
  compress: "unsupported",
  compressedAttention: "unsupported",
  lookup: "unsupported",
  mixParts: "unsupported",
  streamWeights: "unsupported",
  sharedAttention: "unsupported",
  latentAttention: "unsupported",
  choosePositions: "unsupported",
  crossAttention: "unsupported",
  remember: "unsupported",
  keepRemembering: "unsupported",
  causalConv: "unsupported",
  centeredConv: "unsupported",
  previousRow: "unsupported",
  deltaRule: "unsupported",
  wkv: "unsupported",
  selectiveScan: "unsupported",
  multiplyVector: "unsupported",
  matchLength: "unsupported",
  keepLargest: "unsupported",
  softCap(step, lowering) {
    const { graph } = lowering;
    const inner = graph.node("Tanh", [scaled(lowering, valueOf(lowering, step.x), 1 / step.cap)]);
    setValue(lowering, step.x, scaled(lowering, inner, step.cap));
  },
  scale(step, lowering) {
    setUnrotated(lowering, step.x, scaled(lowering, unrotated(lowering, step.x), step.by));
  },
};

function setEmbeds(lowering: Lowering, out: Buf): void {
  setValue(lowering, out, lowering.graph.input("embeds", "float", ["batch", "tokens", out.dim]));
}

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

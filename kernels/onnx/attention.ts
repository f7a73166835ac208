/**
 * Attention. Causal over a cache: `GroupQueryAttention` with past and present in the same memory, which then appends in
 * place. It rotates q and k itself if both wait for the same RoPE. Operator: ContribOperators.md, com.microsoft.
 */
import type { DistanceBias, RopeScaling, Step } from "../../src/engine/program/step.ts";
import { AppError } from "../../src/base/index.ts";
import { vectorOf } from "./matrix.ts";
import { pendingRope, ropeInputs, sameRope, setValue, stackOf, unrotated, valueOf, type Lowering } from "./lowering.ts";

/** The operator's alignment requirements, in elements: heads, rotated heads, rotated pairs. */
const HEAD_MULTIPLE = 8;
const ROTATED_HEAD_MULTIPLE = 16;
const PAIRS_MULTIPLE = 8;

export function attention(step: Extract<Step, { op: "attention" }>, lowering: Lowering): void {
  const { graph } = lowering;
  if (step.headDim % HEAD_MULTIPLE !== 0) {
    const what = `attention of layer ${step.layer}: expected heads of a multiple of ${HEAD_MULTIPLE}, got ${step.headDim}`;
    throw new AppError("unsupported", `${what}; the cpu backend can run it`);
  }
  const ropeQ = pendingRope(lowering, step.q)?.rope;
  const ropeK = pendingRope(lowering, step.k)?.rope;
  const rotates = ropeQ !== undefined && ropeK !== undefined && sameRope(ropeQ, ropeK) && canRotate(step, ropeQ);
  const stack = rotates || (!ropeQ && !ropeK) ? stackOf(lowering, [step.q, step.k, step.v]) : undefined;
  const read = rotates ? unrotated : valueOf;
  const qkv = stack
    ? [stack.value, "", ""]
    : [read(lowering, step.q), read(lowering, step.k), valueOf(lowering, step.v)];
  const cache = ["batch", step.nKvHeads, "ctx", step.headDim];
  const { layer } = step;
  const inputs = [
    ...qkv,
    graph.input(`pk.${layer}`, "float", cache),
    graph.input(`pv.${layer}`, "float", cache),
    graph.input("past", "int32", ["batch"]),
    graph.input("total", "int32", []),
    ...(rotates ? ropeInputs(lowering, ropeQ) : []),
  ];
  // the inputs before it are positions and a bias of the scores
  if (step.sinks) inputs.push(...(rotates ? [] : ["", ""]), "", "", graph.floats(vectorOf(lowering, step.sinks)));
  const out = graph.fresh("attention");
  graph.nodes("GroupQueryAttention", inputs, {
    outputs: [out, `ok.${layer}`, `ov.${layer}`],
    attributes: {
      num_heads: step.nHeads,
      kv_num_heads: step.nKvHeads,
      scale: { float: step.scale },
      ...(step.softCap > 0 ? { softcap: { float: step.softCap } } : {}),
      ...(step.window > 0 ? { local_window_size: step.window } : {}),
      ...(rotates ? { do_rotary: 1, rotary_interleaved: ropeQ.style === "norm" ? 1 : 0 } : {}),
    },
  });
  graph.output(`ok.${layer}`, "float", cache);
  graph.output(`ov.${layer}`, "float", cache);
  lowering.caches.push({ layer, nKvHeads: step.nKvHeads, headDim: step.headDim, rope: step.rope });
  setValue(lowering, step.out, out);
}

/** Over the whole sequence, without a cache: shorter sequences of a batch are padded with ignored tokens. */
export function bidirectionalAttention(
  step: Extract<Step, { op: "bidirectionalAttention" }>,
  lowering: Lowering,
): void {
  const { graph } = lowering;
  lowering.lengths = true;
  const [q, k, v] = [step.q, step.k, step.v].map((buf) => valueOf(lowering, buf));
  const inputs = [q!, k!, v!, "", graph.input("lengths", "int32", ["batch"])];
  if (step.bias) inputs.push(pairBiases(lowering, q!, step.bias));
  const attributes = { num_heads: step.nHeads, scale: { float: step.scale } };
  setValue(lowering, step.out, graph.node("MultiHeadAttention", inputs, attributes));
}

/** Returns whether the operator can rotate such heads; others are rotated before it. */
function canRotate({ headDim }: { headDim: number }, { rotaryDim }: RopeScaling): boolean {
  return headDim % ROTATED_HEAD_MULTIPLE === 0 && rotaryDim % (2 * PAIRS_MULTIPLE) === 0;
}

/** The bias of every pair of positions, (1, nHeads, tokens, tokens). Shorter sequences use the one of the longest. */
function pairBiases({ graph, pairBiases: known }: Lowering, rows: string, bias: DistanceBias): string {
  const { values, far } = bias;
  const found = known.get(bias);
  if (found !== undefined) return found;
  const zeros = graph.node("ConstantOfShape", [graph.node("Shape", [rows], { start: 1, end: 2 })]);
  const ones = graph.node("Add", [zeros, graph.floats(Float32Array.of(1))]);
  const positions = graph.node("Reshape", [graph.node("NonZero", [ones]), graph.ints([-1])]);
  const distances = graph.node("Sub", [positions, graph.node("Reshape", [positions, graph.ints([-1, 1])])]);
  const near = graph.node("Clip", [distances, graph.ints([-far], "int64", []), graph.ints([far], "int64", [])]);
  const width = 2 * far + 1;
  const table = graph.floats(values, [1, values.length / width, width]);
  const made = graph.node("Gather", [table, graph.node("Add", [near, graph.ints([far])])], { axis: 2 });
  known.set(bias, made);
  return made;
}

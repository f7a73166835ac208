/**
 * Step[] → records: the lowering of each step for the kernels. All memory is allocated here: a pass allocates nothing.
 */
import { RESULT, ROWS } from "../../../../kernels/simd/layout.ts";
import { assert } from "../../../base/index.ts";
import type { Variant } from "../../program/describe.ts";
import { takeRowsEarly } from "../../program/early-rows.ts";
import type { Buf, Ops, Step } from "../../program/step.ts";
import { makeChosenRows } from "./chosen-rows.ts";
import { attentionOps } from "./lower-attention.ts";
import { expertOps } from "./lower-experts.ts";
import { partOps } from "./lower-parts.ts";
import { changed, gate, inPlace, linear, product, transposed, type Lowering, type Shared } from "./lowering.ts";
import type { Lowered } from "./passes.ts";
import { makeRecordList } from "./records.ts";
import type { StreamedLayer } from "./streaming/streamed-layers.ts";

/** An embedding's output for rows given as vectors: that vector, or zeros. */
const [VECTOR, ZEROS] = [-1, -2];

/** Supported variants, see describe.ts. */
export const variants: ReadonlySet<Variant> = new Set<Variant>([
  "embed: a second table",
  "attention: sinks",
  "attention: ALiBi",
  "attention: a bias by distance",
  "attention: chunks",
  "attention: values of their own size",
  "bidirectionalAttention: ALiBi",
  "bidirectionalAttention: a bias by distance",
  "bidirectionalAttention: a window",
  "bidirectionalAttention: spans",
  "bidirectionalAttention: shared keys",
  "rope: inside a head",
  "choosePositions: closed blocks",
  "rmsNorm: several weights",
  "layerNorm: parts of a row",
  "clamp: uneven limits",
  "gatedMlp: swiglu_oai",
  "moe: no gate",
  "moe: biases",
  "moe: swiglu_oai",
  "moe: a router of its own",
  "moe: routing",
  "moe: several outputs for an expert",
  "moe: sqrt_softplus",
  "moe: experts chosen before",
  "limits of a gate",
  "soft limits of a gate",
  "deltaRule: a bound",
  "sigmoid or tanh",
  "adapters by row",
]);

/**
 * Lowers the steps; the last one writes `result`, or the buffer it is derived from. Without a result, steps only store.
 * @param rounds the largest number of adapters that a row has chosen; 0: none
 */
export function lower(steps: readonly Step[], result: Buf | undefined, shared: Shared, rounds = 0): Lowered {
  const { memory, maxRows } = shared;
  const list = makeRecordList(shared, { maxRows, result });
  const chosen = rounds > 0 ? makeChosenRows(memory, { maxRows, rounds }) : undefined;
  const streamed: StreamedLayer[] = [];
  const lowering: Lowering = { ...shared, list, chosen, streamed };
  for (const step of takeRowsEarly(steps)) {
    // TypeScript cannot see that ops[step.op] takes the step it was indexed by.
    (ops[step.op] as (step: Step, lowering: Lowering) => void)(step, lowering);
  }
  shared.scratchFloats = Math.max(shared.scratchFloats, lowering.scratchFloats);
  assert(!result || list.get(result).address === RESULT, `the result '${result?.name}' is not in the wanted rows`);
  const { ordered } = shared.streams ?? {};
  const readers = ordered ? list.readers((address) => ordered.unitAt(address)) : [];
  return { ...list.finish(), chosen, streamed, readers };
}

export const ops: Ops<void, Lowering> = {
  ...attentionOps,
  ...expertOps,
  ...partOps,

  embed({ out, table, scale, vectorToken = VECTOR }, lowering) {
    const { list, weights, vectorDim } = lowering;
    const y = list.make(out, { rowSet: ROWS.all });
    const rest = { dim: out.dim, vocab: table.outDim, scale, vectorToken, vectorDim };
    lowering.scratchFloats = Math.max(lowering.scratchFloats, out.dim); // for a row of the table
    list.add("embed", y, { table: weights.factor(table), out: y.address, ...rest });
    for (const { a, b } of table.lowRank ?? []) {
      const inner = list.make({ name: "lowRank.inner", dim: b.inDim }, y);
      const place = weights.matrix(b);
      const none = vectorToken === VECTOR ? ZEROS : vectorToken;
      const narrow = { dim: b.inDim, vocab: b.outDim, scale: 1, vectorToken: none, vectorDim };
      list.add("embed", y, { table: place, out: inner.address, ...narrow });
      const matrix = { ...transposed(a, lowering), scales: weights.constant(Float32Array.of(scale)) };
      product(inner, [{ matrix, out: y }], lowering, { accumulate: 1 });
    }
  },

  lookup({ out, values }, { list, weights }) {
    const y = list.make(out, { rowSet: ROWS.all });
    const place = weights.constant(values);
    list.add("lookup", y, { values: place, out: y.address, tokens: values.length / out.dim, n: out.dim });
  },

  input({ out }, { list }) {
    const y = list.make(out, { rowSet: ROWS.all });
    list.add("input", y, { out: y.address, dim: out.dim });
  },

  linear: ({ out, x, w, b }, lowering) => void linear(x, { out, w, b }, lowering),

  mlp({ out, x, up, upB, down, downB, act }, lowering) {
    const inner = linear(x, { out: { name: "mlp.inner", dim: up.outDim }, w: up, b: upB }, lowering);
    gate({ gate: inner, up: undefined, act }, lowering);
    linear({ name: inner.name, dim: inner.dim }, { out, w: down, b: downB }, lowering);
  },

  gatedMlp({ out, x, act, limit, ...w }, lowering) {
    const bufs = ["gatedMlp.gate", "gatedMlp.up"].map((name) => ({ name, dim: w.gate.outDim }));
    const gated = linear(x, { out: bufs[0]!, w: w.gate, b: w.gateB }, lowering);
    const up = linear(x, { out: bufs[1]!, w: w.up, b: w.upB }, lowering);
    gate({ gate: gated, up, act, limit }, lowering);
    linear(bufs[0]!, { out, w: w.down, b: w.downB }, lowering);
  },

  add({ out, a, b, scale }, { list }) {
    const [left, right] = [list.get(a), list.get(b)];
    const y = out.name === b.name ? inPlace(list, out, right) : inPlace(list, out, left);
    list.add("add", y, { a: left.address, b: right.address, out: y.address, n: out.dim, scale });
  },

  positionScale({ x, coef, floorScale, offset }, { list }) {
    const y = changed(list, x);
    list.add("positionScale", y, { x: y.address, n: x.dim, coef, floorScale, offset });
  },

  addPosition({ x, table }, lowering) {
    const y = changed(lowering.list, x);
    lowering.scratchFloats = Math.max(lowering.scratchFloats, x.dim);
    lowering.list.add("addPosition", y, { x: y.address, table: lowering.weights.matrix(table), n: x.dim });
  },

  addVector({ x, w }, { list, weights }) {
    const y = changed(list, x);
    list.add("addVector", y, { x: y.address, vector: weights.vector(w), n: x.dim });
  },

  addGiven({ x, at }, { list, vectorDim }) {
    const y = changed(list, x);
    list.add("addGiven", y, { x: y.address, n: x.dim, at, vectorDim });
  },

  takeRows({ out, x }, { list }) {
    const from = list.get(x);
    const y = list.make(out, { rowSet: ROWS.wanted });
    list.add("take", y, { x: from.address, out: y.address, n: x.dim });
  },

  softCap({ x, cap }, { list }) {
    const y = changed(list, x);
    list.add("softCap", y, { x: y.address, n: x.dim, cap });
  },

  scale({ x, by }, { list }) {
    const y = changed(list, x);
    list.add("scale", y, { x: y.address, n: x.dim, by });
  },
};

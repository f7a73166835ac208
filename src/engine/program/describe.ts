/**
 * Describes each op for code that analyses programs without running them: the buffers it reads and writes, its weights
 * and their roles, the rows it depends on, and the state it keeps per sequence. Adapters, early rows, splits, memory
 * plans and fault messages use it. The types make the table complete: a new op, buffer or weight without a description
 * is a compile error.
 */
import type { SequenceState } from "./kept-state.ts";
import type { Buf, Step, Weight } from "./step.ts";

/**
 * The role of a weight: a factor of products (`matrix`; one per expert or head in `experts`; the choice of experts in
 * `router`), a lookup by token (`embedding`) or by position (`table`), or plain numbers (`vector`).
 */
export type WeightRole = "matrix" | "experts" | "router" | "embedding" | "table" | "vector";

/**
 * Dependencies of a row of the result besides that row: none, its `position`, earlier rows of its sequence (`past`),
 * all rows of its sequence in this `run`, which rows are `wanted`, or a value that the run supplies (`given`).
 */
type Dependency = "row" | "position" | "past" | "run" | "wanted" | "given";

/** The use of a buffer: read, replaced, or updated in place. */
type Access = "read" | "written" | "changed";

/** The members of a step that hold a buffer or a weight. */
type Members<S, T> = { [K in keyof S]-?: S[K] extends T | undefined ? K : never }[keyof S];

/** Features of some steps beyond the plain form of their op. A backend lists the ones that it supports. */
export type Variant =
  | "embed: a second table"
  | "attention: sinks"
  | "attention: ALiBi"
  | "attention: a bias by distance"
  | "attention: chunks"
  | "attention: values of their own size"
  | "bidirectionalAttention: ALiBi"
  | "bidirectionalAttention: a bias by distance"
  | "bidirectionalAttention: a window"
  | "bidirectionalAttention: spans"
  | "bidirectionalAttention: shared keys"
  | "rmsNorm: several weights"
  | "layerNorm: parts of a row"
  | "gatedMlp: swiglu_oai"
  | "clamp: uneven limits"
  | "moe: no gate"
  | "moe: biases"
  | "moe: swiglu_oai"
  | "moe: a router of its own"
  | "moe: routing"
  | "moe: several outputs for an expert"
  | "moe: sqrt_softplus"
  | "moe: experts chosen before"
  | "rope: inside a head"
  | "choosePositions: closed blocks"
  | "limits of a gate"
  | "soft limits of a gate"
  | "deltaRule: a bound"
  | "sigmoid or tanh"
  | "adapters by row";

interface Description<S> {
  readonly buffers: { readonly [K in Members<S, Buf>]: Access };
  readonly weights: { readonly [K in Members<S, Weight>]: WeightRole };
  readonly sees: Dependency;
  readonly keeps?: (step: S) => SequenceState;
  readonly variants?: (step: S) => readonly (Variant | false)[];
}

const kv = { q: "read", k: "read", v: "read", out: "written" } as const;
const norm = { x: "read", out: "written" } as const;
const changed = { x: "changed" } as const;

type AttentionStep = Extract<Step, { op: "attention" | "sharedAttention" }>;
const attentionVariants = ({ sinks, alibi, bias, chunked, valueDim, headDim }: AttentionStep) =>
  [
    sinks !== undefined && "attention: sinks",
    alibi !== undefined && "attention: ALiBi",
    bias !== undefined && "attention: a bias by distance",
    chunked === true && "attention: chunks",
    valueDim !== undefined && valueDim !== headDim && "attention: values of their own size",
  ] as const;

const isLateActivation = (act: string | undefined): false | Variant =>
  (act === "sigmoid" || act === "tanh") && "sigmoid or tanh";

const descriptions: { readonly [S in Step as S["op"]]: Description<S> } = {
  embed: {
    buffers: { out: "written" },
    weights: { table: "embedding" },
    sees: "given",
    variants: ({ vectorToken }) => [vectorToken !== undefined && "embed: a second table"],
  },
  lookup: { buffers: { out: "written" }, weights: {}, sees: "given" },
  input: { buffers: { out: "written" }, weights: {}, sees: "given" },
  rmsNorm: {
    buffers: norm,
    weights: { w: "vector" },
    sees: "row",
    variants: ({ w }) => [w.outDim > 1 && "rmsNorm: several weights"],
  },
  bareRmsNorm: { buffers: norm, weights: {}, sees: "row" },
  l2Norm: { buffers: norm, weights: {}, sees: "row" },
  layerNorm: {
    buffers: norm,
    weights: { w: "vector", b: "vector" },
    sees: "row",
    variants: ({ w, x }) => [w.inDim !== x.dim && "layerNorm: parts of a row"],
  },
  bareLayerNorm: { buffers: norm, weights: {}, sees: "row" },
  linear: { buffers: norm, weights: { w: "matrix", b: "vector" }, sees: "row" },
  headLinear: { buffers: norm, weights: { w: "experts" }, sees: "row" },
  rope: {
    buffers: changed,
    weights: {},
    sees: "position",
    variants: ({ at = 0 }) => [at > 0 && "rope: inside a head"],
  },
  attention: {
    buffers: { ...kv, chosen: "read" },
    weights: { sinks: "vector" },
    sees: "past",
    keeps: ({ layer, nKvHeads, headDim, valueDim = headDim, window, rope }) => {
      return { kind: "kv", layer, nKvHeads, keyDim: headDim, valueDim, window, rope };
    },
    variants: attentionVariants,
  },
  sharedAttention: {
    buffers: { q: "read", out: "written" },
    weights: { sinks: "vector" },
    sees: "past",
    variants: attentionVariants,
  },
  latentAttention: {
    buffers: { q: "read", k: "read", chosen: "read", out: "written" },
    weights: { sinks: "vector" },
    sees: "past",
    keeps: ({ layer, headDim, rope }) => {
      return { kind: "kv", layer, nKvHeads: 1, keyDim: headDim, valueDim: 0, window: 0, rope };
    },
    variants: ({ sinks }) => [sinks !== undefined && "attention: sinks"],
  },
  choosePositions: {
    buffers: { q: "read", k: "read", weights: "read", out: "written" },
    weights: {},
    sees: "past",
    keeps: ({ cache: layer, headDim, rope }) => {
      return { kind: "kv", layer, nKvHeads: 1, keyDim: headDim, valueDim: 0, window: 0, rope };
    },
    variants: ({ closed = false }) => [closed && "choosePositions: closed blocks"],
  },
  compress: {
    buffers: { x: "read", gate: "read", out: "written" },
    weights: { bias: "vector" },
    sees: "past",
    keeps: ({ layer, x, ratio, overlap }) => {
      return { kind: "conv", layer, rows: (overlap ? 2 : 1) * ratio - 1, dim: 2 * x.dim };
    },
  },
  compressedAttention: {
    buffers: { q: "read", k: "read", entries: "read", chosen: "read", out: "written" },
    weights: { sinks: "vector" },
    sees: "past",
    keeps: ({ layer, headDim }) => {
      return { kind: "kv", layer, nKvHeads: 1, keyDim: headDim, valueDim: headDim, window: 0, rope: undefined };
    },
  },
  bidirectionalAttention: {
    buffers: kv,
    weights: {},
    sees: "run",
    variants: ({ alibi, bias, window = 0, inSpans = false, nHeads, nKvHeads = nHeads }) => [
      alibi !== undefined && "bidirectionalAttention: ALiBi",
      bias !== undefined && "bidirectionalAttention: a bias by distance",
      window > 0 && "bidirectionalAttention: a window",
      inSpans && "bidirectionalAttention: spans",
      nKvHeads !== nHeads && "bidirectionalAttention: shared keys",
    ],
  },
  crossAttention: { buffers: { q: "read", out: "written" }, weights: {}, sees: "past" },
  remember: { buffers: { k: "changed", v: "read" }, weights: {}, sees: "past" },
  keepRemembering: { buffers: changed, weights: {}, sees: "given" },
  causalConv: {
    buffers: norm,
    weights: { w: "vector", b: "vector" },
    sees: "past",
    keeps: ({ layer, x, w }) => ({ kind: "conv", layer, rows: w.inDim - 1, dim: x.dim }),
  },
  centeredConv: { buffers: norm, weights: { w: "vector", b: "vector" }, sees: "run" },
  deltaRule: {
    buffers: { q: "read", k: "read", v: "read", alpha: "read", beta: "read", out: "written" },
    weights: { a: "vector", dt: "vector" },
    sees: "past",
    keeps: ({ layer, nHeads, headDim }) => ({ kind: "recurrent", layer, shape: [nHeads, headDim, headDim] }),
    variants: ({ bound }) => [bound !== undefined && "deltaRule: a bound"],
  },
  previousRow: {
    buffers: norm,
    weights: {},
    sees: "past",
    keeps: ({ layer, x }) => ({ kind: "conv", layer, rows: 1, dim: x.dim }),
  },
  wkv: {
    buffers: { r: "read", w: "read", k: "read", v: "read", a: "read", b: "read", out: "written" },
    weights: {},
    sees: "past",
    keeps: ({ layer, nHeads, headDim }) => ({ kind: "recurrent", layer, shape: [nHeads, headDim, headDim] }),
  },
  selectiveScan: {
    buffers: { x: "read", dt: "read", b: "read", c: "read", out: "written" },
    weights: { dtB: "vector", a: "vector", d: "vector" },
    sees: "past",
    keeps: ({ layer, nHeads, headDim, stateDim }) => ({ kind: "recurrent", layer, shape: [nHeads, headDim, stateDim] }),
  },
  mlp: {
    buffers: norm,
    weights: { up: "matrix", upB: "vector", down: "matrix", downB: "vector" },
    sees: "row",
    variants: ({ act }) => [isLateActivation(act)],
  },
  gatedMlp: {
    buffers: norm,
    weights: { gate: "matrix", gateB: "vector", up: "matrix", upB: "vector", down: "matrix", downB: "vector" },
    sees: "row",
    variants: ({ act, limit }) => [
      act === "swiglu_oai" && "gatedMlp: swiglu_oai",
      limit !== undefined && "limits of a gate",
      limit?.soft === true && "soft limits of a gate",
      isLateActivation(act),
    ],
  },
  moe: {
    buffers: { x: "read", routed: "read", chosen: "read", out: "written" },
    weights: {
      router: "router",
      routerB: "vector",
      selectB: "vector",
      gate: "experts",
      gateB: "vector",
      up: "experts",
      upB: "vector",
      down: "experts",
      downB: "vector",
    },
    sees: "row",
    variants: ({ routed, chosen, routing, gate, gateB, upB, downB, routerB, selectB, act, limit }) => [
      routed !== undefined && "moe: a router of its own",
      chosen !== undefined && "moe: experts chosen before",
      routing?.score === "sqrt_softplus" && "moe: sqrt_softplus",
      gate === undefined && "moe: no gate",
      (gateB ?? upB ?? downB) !== undefined && "moe: biases",
      act === "swiglu_oai" && "moe: swiglu_oai",
      (routing ?? routerB ?? selectB) !== undefined && "moe: routing",
      (routing?.perExpert ?? 1) > 1 && "moe: several outputs for an expert",
      limit !== undefined && "limits of a gate",
      limit?.soft === true && "soft limits of a gate",
      isLateActivation(act),
    ],
  },
  multiply: { buffers: { a: "read", b: "read", out: "written" }, weights: {}, sees: "row" },
  activate: { buffers: changed, weights: {}, sees: "row" },
  clamp: {
    buffers: changed,
    weights: {},
    sees: "row",
    variants: ({ min, max }) => [min !== -max && "clamp: uneven limits"],
  },
  slice: { buffers: norm, weights: {}, sees: "row" },
  join: { buffers: { a: "read", b: "read", out: "written" }, weights: {}, sees: "row" },
  add: { buffers: { a: "read", b: "read", out: "written" }, weights: {}, sees: "row" },
  positionScale: { buffers: changed, weights: {}, sees: "position" },
  addPosition: { buffers: changed, weights: { table: "table" }, sees: "position" },
  mixParts: { buffers: { x: "read", weights: "read", out: "written" }, weights: {}, sees: "row" },
  streamWeights: { buffers: changed, weights: { scale: "vector", base: "vector" }, sees: "row" },
  addVector: { buffers: changed, weights: { w: "vector" }, sees: "row" },
  addGiven: { buffers: changed, weights: {}, sees: "given" },
  multiplyVector: { buffers: changed, weights: { w: "vector" }, sees: "row" },
  matchLength: { buffers: { x: "changed", like: "read" }, weights: {}, sees: "row" },
  keepLargest: { buffers: changed, weights: {}, sees: "row" },
  takeRows: { buffers: norm, weights: {}, sees: "wanted" },
  softCap: { buffers: changed, weights: {}, sees: "row" },
  scale: { buffers: changed, weights: {}, sees: "row" },
};

/** A description whose functions accept any step: callers look it up by the step's own op. */
interface OpDescription extends Pick<Description<Step>, "sees"> {
  readonly buffers: Readonly<Record<string, Access>>;
  readonly weights: Readonly<Record<string, WeightRole>>;
  keeps?(step: Step): SequenceState;
  variants?(step: Step): readonly (Variant | false)[];
}

const describe = (step: Step): OpDescription => descriptions[step.op] as OpDescription;
const member = <T>(step: Step, name: string): T | undefined => (step as unknown as Record<string, T | undefined>)[name];

/** The buffers that a step reads, including the ones it also updates, without duplicates. */
export function readsOf(step: Step): readonly Buf[] {
  const bufs = new Map<string, Buf>();
  for (const [name, access] of Object.entries(describe(step).buffers)) {
    const buf = access === "written" ? undefined : member<Buf>(step, name);
    if (buf) bufs.set(buf.name, buf);
  }
  return [...bufs.values()];
}

/** Values per row of the buffers that a step reads. */
export const handedDim = (step: Step): number => readsOf(step).reduce((sum, { dim }) => sum + dim, 0);

/** The buffer that a step writes or updates. */
export function writtenBy(step: Step): Buf {
  const [name] = Object.entries(describe(step).buffers).find(([, access]) => access !== "read")!; // every op writes one
  return member<Buf>(step, name)!;
}

/** The weights of a step with one of `roles`, in the order of its description; without roles, all. */
export function weightsOf(step: Step, ...roles: readonly WeightRole[]): readonly Weight[] {
  return Object.entries(describe(step).weights).flatMap(([name, role]) => {
    const weight = roles.length === 0 || roles.includes(role) ? member<Weight>(step, name) : undefined;
    return weight ? [weight] : [];
  });
}

export const withBuffers = (step: Step, change: (buf: Buf) => Buf): Step =>
  withMembers(step, Object.keys(describe(step).buffers), change);

export function withWeights(step: Step, change: (weight: Weight, role: WeightRole) => Weight): Step {
  const { weights } = describe(step);
  return withMembers(step, Object.keys(weights), (weight: Weight, name) => change(weight, weights[name]!));
}

function withMembers<T>(step: Step, names: readonly string[], change: (value: T, name: string) => T): Step {
  const entries = names.flatMap((name) => {
    const value = member<T>(step, name);
    return value === undefined ? [] : [[name, change(value, name)] as const];
  });
  return { ...step, ...Object.fromEntries(entries) };
}

/** Returns whether a step treats every row alike, at any position. */
export const isRowWise = (step: Step): boolean => describe(step).sees === "row";

/**
 * Returns whether rows of one sequence interact in a step, as in attention or its replacement. A layer has one such
 * step, or several in parallel.
 */
export const mixesRows = (step: Step): boolean => ["past", "run"].includes(describe(step).sees);

/** Returns whether sequences must run whole: a step of an encoder reads later rows. */
export const runsWhole = (steps: readonly Step[]): boolean => steps.some((step) => describe(step).sees === "run");

/** The state that a step keeps of each sequence between runs. */
export const stateOf = (step: Step): SequenceState | undefined => describe(step).keeps?.(step);

/** The features of a step beyond the plain form of its op. */
export function variantsOf(step: Step): readonly Variant[] {
  const own = (describe(step).variants?.(step) ?? []).filter((variant) => variant !== false);
  return weightsOf(step).some(({ offered }) => offered) ? [...own, "adapters by row"] : own;
}

/**
 * Common state of lowerings: the graph value of each activation buffer, and deferred operations that a later node may
 * do for free (splitting stacked projections, RoPE inside attention).
 *
 * Every activation is (batch, tokens, dim) float32; after `takeRows`, (1, rows, dim).
 */
import type { Program, WeightSource } from "../../src/engine/program/backend.ts";
import type { Buf, DistanceBias, RopeScaling, Step } from "../../src/engine/program/step.ts";
import type { GraphBuilder } from "./graph.ts";

/** Several matrices applied to one input as one: value (batch, tokens, Σ sizes). */
interface Stack {
  readonly value: string;
  readonly sizes: readonly number[];
  /** Its parts, once split. */
  parts: readonly string[] | undefined;
}

/** The content of a buffer: a separate value, or a part of a stack; and a pending RoPE. */
interface Held {
  readonly value: string | { readonly stack: Stack; readonly index: number };
  readonly rope: Extract<Step, { op: "rope" }> | undefined;
}

/** Factors by position that the host computes: see the step of that name. */
type PositionScale = Omit<Extract<Step, { op: "positionScale" }>, "op" | "x">;

/** Information for the host that runs the graph. */
export interface Lowered {
  /** The source of input `embeds`; undefined if it is an input of the run. */
  readonly embed: Extract<Step, { op: "embed" }> | undefined;
  /** Tables for inputs `cos.i`, `sin.i`, (ctxLen, rotaryDim / 2). */
  readonly ropes: readonly RopeScaling[];
  /** For inputs `position_scale.i`, (batch, tokens, 1). */
  readonly positionScales: readonly PositionScale[];
  /** True if the graph has input `positions`, int64 (batch, tokens). */
  readonly positions: boolean;
  /** True if the graph has input `lengths`, int32 (batch): tokens of each sequence without padding. */
  readonly lengths: boolean;
  /** One entry per attention step, in order: inputs `pk.layer`, `pv.layer`, outputs `ok.layer`, `ov.layer`. */
  readonly caches: readonly {
    readonly layer: number;
    readonly nKvHeads: number;
    readonly headDim: number;
    readonly rope: RopeScaling | undefined;
  }[];
}

export interface Lowering {
  readonly graph: GraphBuilder;
  readonly source: WeightSource;
  readonly precise: boolean;
  /** No state is kept for later runs. */
  readonly encoder: boolean;
  /** Float32 value of each float16 bit pattern, (65,536). */
  readonly half: Float32Array;
  readonly held: Map<string, Held>;
  /** Sums over blocks of an input, by value and block length: weights with minima share them. */
  readonly blockSums: Map<string, string>;
  /** Biases of all pairs of positions: layers share them. */
  readonly pairBiases: Map<DistanceBias, string>;
  embed: Lowered["embed"];
  readonly ropes: RopeScaling[];
  readonly positionScales: PositionScale[];
  positions: boolean;
  lengths: boolean;
  readonly caches: Lowered["caches"][number][];
  rowsTaken: boolean;
  /** Called with the number of packed weights. */
  readonly packed: (weights: number) => void;
}

export function makeLowering(
  program: Program,
  options: Pick<Lowering, "graph" | "precise" | "encoder" | "half" | "packed">,
): Lowering {
  return {
    ...options,
    source: program.weights,

    held: new Map(),
    blockSums: new Map(),
    pairBiases: new Map(),
    embed: undefined,
    ropes: [],
    positionScales: [],
    positions: false,
    lengths: false,
    caches: [],
    rowsTaken: false,
  };
}

/** The graph value of a buffer, after all deferred operations. */
export function valueOf(lowering: Lowering, buf: Buf): string {
  const held = heldOf(lowering, buf);
  if (held.rope) setValue(lowering, buf, rotate(lowering, { value: unrotated(lowering, buf), rope: held.rope }));
  return unrotated(lowering, buf);
}

/** The graph value of a buffer before its pending RoPE. */
export function unrotated(lowering: Lowering, buf: Buf): string {
  const { value, rope } = heldOf(lowering, buf);
  if (typeof value === "string") return value;
  const apart = partsOf(lowering, value.stack)[value.index]!;
  lowering.held.set(buf.name, { value: apart, rope });
  return apart;
}

/** Sets the value of a buffer. */
export function setValue(lowering: Lowering, buf: Buf, value: string): void {
  lowering.held.set(buf.name, { value, rope: undefined });
}

/** As `setValue`, for a change that commutes with the pending RoPE. */
export function setUnrotated(lowering: Lowering, buf: Buf, value: string): void {
  lowering.held.set(buf.name, { value, rope: heldOf(lowering, buf).rope });
}

/** Buffers hold the parts of a stack, which is split only if a step reads one of them. */
export function setParts(lowering: Lowering, bufs: readonly Buf[], value: string): void {
  const stack: Stack = { value, sizes: bufs.map((buf) => buf.dim), parts: undefined };
  for (const [index, buf] of bufs.entries()) lowering.held.set(buf.name, { value: { stack, index }, rope: undefined });
}

/** The stack whose parts are exactly these buffers, in this order. */
export function stackOf(lowering: Lowering, bufs: readonly Buf[]): Stack | undefined {
  const [first] = bufs;
  const value = first && heldOf(lowering, first).value;
  if (!value || typeof value === "string" || value.stack.sizes.length !== bufs.length) return undefined;
  const { stack } = value;
  const whole = bufs.every((buf, index) => {
    const each = heldOf(lowering, buf).value;
    return typeof each !== "string" && each.stack === stack && each.index === index;
  });
  return whole ? stack : undefined;
}

/** The parts of a stack as separate values. */
function partsOf({ graph }: Lowering, stack: Stack): readonly string[] {
  if (!stack.parts) {
    const outputs = stack.sizes.map(() => graph.fresh("part"));
    graph.nodes("Split", [stack.value, graph.ints(stack.sizes)], { outputs, attributes: { axis: -1 } });
    stack.parts = outputs;
  }
  return stack.parts;
}

export function pendingRope(lowering: Lowering, buf: Buf): Held["rope"] {
  return heldOf(lowering, buf).rope;
}

/** Defers a RoPE: attention does it for free, other ops get it through `valueOf`. */
export function setRope(lowering: Lowering, step: Extract<Step, { op: "rope" }>): void {
  if (heldOf(lowering, step.x).rope) valueOf(lowering, step.x);
  lowering.held.set(step.x.name, { value: heldOf(lowering, step.x).value, rope: step });
}

/** Names of the cos and sin inputs for a RoPE. */
export function ropeInputs({ graph, ropes }: Lowering, rope: RopeScaling): readonly [string, string] {
  let index = ropes.findIndex((each) => sameRope(each, rope));
  if (index < 0) index = ropes.push(rope) - 1;
  const shape = ["ctx", rope.rotaryDim / 2] as const;
  return [graph.input(`cos.${index}`, "float", shape), graph.input(`sin.${index}`, "float", shape)];
}

/** Returns whether two RoPEs are the same: architectures share the object, and different ones must not be merged. */
export function sameRope(a: RopeScaling, b: RopeScaling): boolean {
  return a === b || Bun.deepEquals(a, b);
}

/** The input that holds each token's position. */
export function positionsInput(lowering: Lowering): string {
  lowering.positions = true;
  return lowering.graph.input("positions", "int64", ["batch", "tokens"]);
}

function heldOf({ held }: Lowering, buf: Buf): Held {
  const value = held.get(buf.name);
  if (!value) throw new Error(`invariant: buffer '${buf.name}' is read before it is written`);
  return value;
}

function rotate(
  lowering: Lowering,
  { value, rope: step }: { value: string; rope: Extract<Step, { op: "rope" }> },
): string {
  const { graph } = lowering;
  const [cos, sin] = ropeInputs(lowering, step.rope);
  return graph.node("RotaryEmbedding", [value, positionsInput(lowering), cos, sin], {
    interleaved: step.rope.style === "norm" ? 1 : 0,
    num_heads: step.heads,
    rotary_embedding_dim: step.rope.rotaryDim === step.headDim ? 0 : step.rope.rotaryDim,
  });
}

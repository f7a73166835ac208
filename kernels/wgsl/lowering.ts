/** The output of lowering: a dispatch without its step, and helpers for its operands. */
import type { CacheType } from "./cache.ts";
import type { Activation as Act, Buf, GateLimit, Gating, Step, Weight } from "../../src/engine/program/step.ts";
import type { Activation, Dispatch, Operand, Piece, RowKind } from "./dispatch.ts";
import type { SubgroupMatrix, Tuning } from "../../src/base/index.ts";

/** Threads of an elementwise workgroup. */
export const WG = 64;

export const ACTIVATIONS: Readonly<Record<Act, number>> = {
  silu: 0,
  gelu: 1,
  gelu_erf: 2,
  relu: 3,
  relu_sqr: 4,
  sigmoid: 5,
  tanh: 6,
  softplus: 7,
  elu: 10, // 8, 9 and 11 are below
};
/** For kernels whose activation is optional. */
export const NO_ACTIVATION = 8;
const SWIGLU_OAI = 9;
const SOFT_SILU = 11;
/** Stands for no limit: GPUs need not have infinities. */
const GREATEST = 3.4e38;
export const clampToFinite = (limit: number): number => Math.max(-GREATEST, Math.min(limit, GREATEST));

export interface LowerOptions {
  /** For runs of many rows (matrix by matrix): each workgroup takes several. Otherwise matrix by vector. */
  readonly isGemm: boolean;
  readonly ctxLen: number;
  /** Format of the KV cache; default f32. */
  readonly cacheType?: CacheType;
  /** The pieces of a tensor, in order. Experts are never split. */
  piecesOf(weight: Weight): readonly Piece[];
  /** Values of a row given as a vector; default 0: all rows have ids. */
  readonly givenDim?: number;
  /** For runs whose rows have chosen adapters; default: their changes are left out. */
  readonly adapts?: boolean;
  /** Experts that the CPU computes; default: none. */
  readonly hostSteps?: ReadonlySet<Step> | undefined;
  /** Storage buffers that a kernel can bind, at least 8; default: no limit. */
  readonly buffersMax?: number;
  /** Sizes of kernels; default `PLAIN`. */
  readonly tuning?: Tuning;
  /** The device's subgroup matrices; default: none. */
  readonly matrix?: SubgroupMatrix | undefined;
}

/** State of the lowering of one step. */
export interface Context extends LowerOptions {
  readonly tuning: Tuning;
  /** The kind of rows in each buffer now. */
  readonly rows: Map<string, RowKind>;
}

export type StepDispatch = Omit<Dispatch, "step">;

export const batch: Operand = { kind: "batch" };
/** For cross attention. */
export const memoryBatch: Operand = { kind: "batch", memory: true };
/** For kernels that would bind more than 8 storage buffers with it. */
export const uniformBatch: Operand = { kind: "batch", uniform: true };
/** For an optional vector of a kernel. */
export const NONE: Operand = { kind: "vectors", weights: [] };
export const vector = (weight: Weight | undefined): Operand => ({ kind: "vector", weight });

/** The current value of a buffer. */
export function valueOf(buf: Buf, context: Context, times = 1): Activation {
  return { buf, rows: context.rows.get(buf.name) ?? "all", times };
}

export const read = (value: Activation): Operand => ({ kind: "activation", value, access: "read" });
export const update = (value: Activation): Operand => ({ kind: "activation", value, access: "update" });

/** A new value of a buffer, for the same rows as its inputs. */
export function write(
  buf: Buf,
  like: Activation,
  context: Context,
  times = like.times,
): Operand & { value: Activation } {
  context.rows.set(buf.name, like.rows);
  return { kind: "activation", value: { buf, rows: like.rows, times }, access: "write" };
}

/** Workgroups of a kernel with one thread per value of a row, or per eight values. */
export const grid = (value: Activation, perThread = 1): Dispatch["grid"] => ({
  x: Math.ceil(value.buf.dim / perThread / WG),
  rows: value.rows,
  times: value.times,
  rowsEach: 1,
});

/** The same operand for all but the first of several dispatches that write parts of one value. */
export const again = (out: Operand & { value: Activation }, i: number): Operand => (i === 0 ? out : update(out.value));

/** Parameters of how gate and up are combined; a limit of 0 means no limit. */
export const gatingParams = ({ act, limit }: { act: Gating; limit?: GateLimit | undefined }) => ({
  kind: limit?.soft ? SOFT_SILU : act === "swiglu_oai" ? SWIGLU_OAI : ACTIVATIONS[act],
  gateLimit: limit?.gate ?? 0,
  upLimit: limit?.up ?? 0,
});

/** up = the combination of gate and up */
export function gate(
  gated: Activation,
  up: Activation,
  gating: { act: Gating; limit?: GateLimit | undefined },
): StepDispatch {
  const params = { dim: up.buf.dim, ...gatingParams(gating) };
  return { kernel: "gate", operands: [read(gated), update(up)], params, grid: grid(up) };
}

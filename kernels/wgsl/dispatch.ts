/**
 * A pass of a kernel before there is a device: which kernel, on what, over how many workgroups. Lowering makes lists of
 * these; `src/backend/webgpu/plan.ts` gives them buffers and records them.
 */
import type { Buf, RopeScaling, Weight } from "../../src/backend/step.ts";
import type { KernelName } from "./sources.ts";

/** Which rows of a run a buffer holds: all of them, or those whose results are wanted. */
export type RowKind = "all" | "wanted";

/** An activation: (rows · times, dim) words of 4 bytes. */
export interface Activation {
  readonly buf: Buf;
  readonly rows: RowKind;
  /** Rows of the buffer for each row of the run: the experts that a row chose; 1 otherwise. */
  readonly times: number;
}

/** What a binding of a kernel is. */
export type Operand =
  /** `write` begins a new value, which may lie elsewhere than the one before; `update` changes the present one. */
  | { readonly kind: "activation"; readonly value: Activation; readonly access: "read" | "write" | "update" }
  /** Raw blocks: one piece of a tensor. */
  | { readonly kind: "matrix"; readonly tensor: string; readonly piece: number }
  /** A vector of weights, unpacked to float32 when the model is loaded; undefined: there is none, nothing is read. */
  | { readonly kind: "vector"; readonly weight: Weight | undefined }
  /** Numbers known when the model is loaded; undefined: none, nothing is read. */
  | { readonly kind: "constant"; readonly values: Float32Array | undefined }
  /** What a run was given for its rows: (rows, dim). */
  | { readonly kind: "input" }
  | { readonly kind: "cache"; readonly layer: number; readonly part: "keys" | "values" }
  | { readonly kind: "rope"; readonly rope: RopeScaling; readonly part: "cos" | "sin" }
  /** The run's rows: see batch.ts. */
  | { readonly kind: "batch" };

/** A word of a kernel's `Params`: an unsigned number, or a float. */
export type Param = number | { readonly f32: number };

export interface Dispatch {
  readonly kernel: KernelName;
  /** Block types of the kernel's matrices, in order. */
  readonly quants?: readonly string[];
  /** Bindings 0 … n − 1, in the order of the kernel's header; the parameters come behind them. */
  readonly operands: readonly Operand[];
  readonly params: readonly Param[];
  /** Workgroups: x, then one for each `rows · times / rowsEach`. */
  readonly grid: { readonly x: number; readonly rows: RowKind; readonly times: number; readonly rowsEach: number };
  /** Index of the step that it belongs to, for messages. */
  readonly step: number;
}

/** A part of a tensor that a binding can hold. Rows are those of the tensor, experts one after another. */
export interface Piece {
  readonly index: number;
  readonly first: number;
  readonly count: number;
}

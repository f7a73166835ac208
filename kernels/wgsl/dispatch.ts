/**
 * A pass of a kernel before there is a device: which kernel, on what, over how many workgroups. Lowering makes lists of
 * these; `src/engine/backends/webgpu/plan.ts` gives them buffers and records them.
 */
import type { Buf, RopeScaling, Weight } from "../../src/engine/program/step.ts";
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

export type Vector = Weight | Float32Array;

/** What a binding of a kernel is. */
export type Operand =
  /** `write` begins a new value, which may lie elsewhere than the one before; `update` changes the present one. */
  | { readonly kind: "activation"; readonly value: Activation; readonly access: "read" | "write" | "update" }
  /** Raw blocks: one piece of a tensor. */
  | { readonly kind: "matrix"; readonly tensor: string; readonly piece: number }
  /** A vector of weights, unpacked to float32 when the model is loaded; undefined: there is none, nothing is read. */
  | { readonly kind: "vector"; readonly weight: Weight | undefined }
  /** Several of them, or numbers known when the model is loaded, one behind the other; none: nothing is read. */
  | { readonly kind: "vectors"; readonly weights: readonly Vector[] }
  /** Numbers known when the model is loaded; undefined: none, nothing is read. */
  | { readonly kind: "constant"; readonly values: Float32Array | undefined }
  /** What a run was given for its rows: (rows, dim). */
  | { readonly kind: "input" }
  | { readonly kind: "cache"; readonly layer: number; readonly part: "keys" | "values" }
  /** (positions, pairs) cosines, each with its sine. */
  | { readonly kind: "rope"; readonly rope: RopeScaling }
  /** The run's rows: see batch.ts. */
  | { readonly kind: "batch" };

/** What a kernel's `Params` hold, by name: see params.ts. */
export type Params = Readonly<Record<string, number>>;

/** Workgroups of a dispatch: x, then one for each `rows · times / rowsEach`, and `more`. */
export interface Grid {
  readonly x: number;
  readonly rows: RowKind;
  readonly times: number;
  readonly rowsEach: number;
  /** Where rows fall into so many groups, each of which may end in a workgroup that is not full; 0 where left out. */
  readonly more?: number;
  /** In z, one for each split of what the longest row of a run sees, at most so many. See splits.ts. */
  readonly splits?: number;
  /** It joins splits: there is nothing to do where no row has several. */
  readonly joins?: boolean;
}

/** Workgroups of so many rows; none where there are no rows. */
export function groupsOf(
  { rows, times, rowsEach, more = 0 }: Omit<Grid, "x">,
  counts: Record<RowKind, number>,
): number {
  return counts[rows] === 0 ? 0 : Math.ceil((counts[rows] * times) / rowsEach) + more;
}

export interface Dispatch {
  readonly kernel: KernelName;
  /** Block types of the kernel's matrices, in order. */
  readonly quants?: readonly string[];
  /** Bindings 0 … n − 1, in the order of the kernel's header; the parameters come behind them. */
  readonly operands: readonly Operand[];
  readonly params: Params;
  readonly grid: Grid;
  /** Index of the step that it belongs to, for messages. */
  readonly step: number;
}

/** A part of a tensor that a binding can hold. Rows are those of the tensor, experts one after another. */
export interface Piece {
  readonly index: number;
  readonly first: number;
  readonly count: number;
}

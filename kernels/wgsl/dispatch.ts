/**
 * A dispatch without a device: the kernel, its operands, and the number of workgroups. Lowering makes lists of these;
 * `src/engine/backends/webgpu/plan.ts` assigns buffers and records them.
 */
import type { Buf, RopeScaling, Step, Weight } from "../../src/engine/program/step.ts";
import type { KernelName } from "./sources.ts";

/** The rows in a buffer: all of the run's, or the ones whose results are wanted. */
export type RowKind = "all" | "wanted";

/** An activation: (rows · times, dim) words of 4 bytes. */
export interface Activation {
  readonly buf: Buf;
  readonly rows: RowKind;
  /** Rows of the buffer per row of the run: the experts of a row; otherwise 1. */
  readonly times: number;
}

export type Vector = Weight | Float32Array;

/** The operand of a kernel's binding. */
export type Operand =
  /** `write` begins a new value, possibly at another place; `update` changes the current one. */
  | { readonly kind: "activation"; readonly value: Activation; readonly access: "read" | "write" | "update" }
  /** Raw blocks: one piece of a tensor. */
  | { readonly kind: "matrix"; readonly tensor: string; readonly piece: number }
  /** A vector of weights, unpacked to float32 when the model is loaded; undefined: absent, never read. */
  | { readonly kind: "vector"; readonly weight: Weight | undefined }
  /** Several of them, or numbers known when the model is loaded, in sequence; empty: never read. */
  | { readonly kind: "vectors"; readonly weights: readonly Vector[] }
  /** Numbers known when the model is loaded; undefined: absent, never read. */
  | { readonly kind: "constant"; readonly values: Float32Array | undefined }
  /** The input rows of a run: (rows, dim). */
  | { readonly kind: "input" }
  /** The vectors of the rows without an id: (rows without an id, dim). */
  | { readonly kind: "given" }
  /** Inputs of a step that the CPU computes, (rows, dim). */
  | { readonly kind: "handed" }
  /** The result of that step, (rows, dim). */
  | { readonly kind: "returned" }
  /** Keys or values of all slots: of their tokens, or of their memories. */
  | {
      readonly kind: "cache";
      readonly layer: number;
      readonly part: "keys" | "values";
      readonly of: "tokens" | "memory";
    }
  /** The state of a step, one per slot. */
  | { readonly kind: "state"; readonly of: Step }
  /** (positions, pairs) cosines, each with its sine. */
  | { readonly kind: "rope"; readonly rope: RopeScaling }
  /** The adapters that rows have chosen from a list: see chosen.ts. */
  | { readonly kind: "chosen"; readonly members: readonly number[]; readonly rows: RowKind }
  /** The run's rows: see batch.ts. `memory`: the cell of each is the last row of its memory, or −1. */
  | { readonly kind: "batch"; readonly uniform?: boolean; readonly memory?: boolean };

/** A kernel's `Params` by name: see params.ts. */
export type Params = Readonly<Record<string, number>>;

/** Workgroups of a dispatch: x, then one per `rows · times / rowsEach`, and `more`. */
export interface Grid {
  readonly x: number;
  /** `sequences`: one workgroup per sequence of the run. */
  readonly rows: RowKind | "sequences";
  readonly times: number;
  readonly rowsEach: number;
  /** Number of groups of rows, each of which may end in a partial workgroup; default 0. */
  readonly more?: number;
  /** In z: one per split of the run's longest context, at most this number. See splits.ts. */
  readonly splits?: number;
  /** Splits are of the run's longest memory. */
  readonly ofMemory?: boolean;
  /** Joins splits: does nothing if no row has several. */
  readonly joins?: boolean;
  /** Does nothing unless some row is given as a vector. */
  readonly gives?: boolean;
  /** Does nothing unless some row has no memory. */
  readonly forgets?: boolean;
  /** Does nothing unless some sequence has several rows in the run. */
  readonly repeats?: boolean;
}

/** Number of workgroups for a number of rows; zero without rows. */
export function groupsOf(
  { rows, times, rowsEach, more = 0 }: Omit<Grid, "x">,
  counts: Readonly<Record<RowKind, number>> & { readonly sequences?: number },
): number {
  const count = rows === "sequences" ? (counts.sequences ?? counts.all) : counts[rows];
  return count === 0 ? 0 : Math.ceil((count * times) / rowsEach) + more;
}

export interface Dispatch {
  readonly kernel: KernelName;
  /** Block types of the kernel's matrices, in order. */
  readonly quants?: readonly string[];
  /** Bindings 0 … n − 1, in the order of the kernel's header; the parameters come after them. */
  readonly operands: readonly Operand[];
  readonly params: Params;
  readonly grid: Grid;
  /** Index of its step, for messages. */
  readonly step: number;
}

/** A part of a tensor that fits a binding. Rows are the tensor's, experts in sequence. */
export interface Piece {
  readonly index: number;
  readonly first: number;
  readonly count: number;
}

/** The data of a run of the steps: its rows, its activations, and the states of their sequences. */
import type { RowAdapter } from "../../program/backend.ts";
import type { RopeTable } from "../../program/rope.ts";
import type { Buf, RopeScaling, Step } from "../../program/step.ts";
import type { WeightReader } from "./weights.ts";

/** An activation of this pass. */
export interface Matrix {
  readonly data: Float32Array; // (rows, dim), possibly longer
  readonly rows: number;
  readonly dim: number;
}

/** Keys, rotated, and values of one layer. */
export interface KvLayer {
  readonly k: Float32Array; // (slots, ctxLen, nKvHeads · keyDim)
  readonly v: Float32Array; // (slots, ctxLen, nKvHeads · valueDim); empty if values are part of the keys
}

/** Everything that a run of the steps reads and writes. */
export interface Pass {
  readonly tokens: Int32Array; // (rows), −1 for a row given as a vector
  /** The rows' initial values, if the steps begin with an `input`. */
  readonly input: Float32Array; // (rows, dim)
  readonly vectors: Float32Array; // (rows without an id, vectorDim)
  readonly vectorDim: number;
  readonly slots: Int32Array; // (rows)
  /** The batch entry of each row; rows of one entry are adjacent. */
  readonly sequences: Int32Array; // (rows)
  /** The cell of a row's keys and values in its slot: the number of tokens before it. */
  readonly cells: Int32Array; // (rows)
  /** The first cell of a row's span, or its own. */
  readonly firstCells: Int32Array; // (rows)
  /** The last cell that a row attends to: its own, or the last of its span. */
  readonly lastCells: Int32Array; // (rows)
  /** Time, height and width. */
  readonly positions: Int32Array; // (rows, 3)
  readonly adapters: readonly (readonly RowAdapter[])[]; // (rows)
  /** Indexes of the rows whose logits or states are wanted. */
  readonly wanted: Int32Array;
  readonly ctxLen: number;
  readonly slotCount: number;
  /** Scratch of one head's attention. */
  readonly scores: Float64Array; // (ctxLen)
  /** By layer. */
  readonly kv: ReadonlyMap<number, KvLayer>;
  /** Keys and values of memories by layer: (slots, the most rows, nKvHeads · headDim). */
  readonly memories: ReadonlyMap<number, KvLayer>;
  /** The rows of each row's memory; 0: it has none. */
  readonly memoryRows: Int32Array; // (rows)
  /** States of convolutions and recurrences: (slots, values of the state). */
  readonly kept: ReadonlyMap<Step, Float32Array>;
  readonly ropes: ReadonlyMap<RopeScaling, RopeTable>;
  readonly weights: WeightReader;
  /** Memory for `rows` rows of a buffer, with undefined content. */
  make(buf: Buf, rows: number): Matrix;
  /** The value from an earlier step. */
  get(buf: Buf): Matrix;
}

/** Memory for `out`; for a step that works in place, `x` itself. */
export const madeLike = (pass: Pass, out: Buf, x: Buf): Matrix =>
  out.name === x.name ? pass.get(x) : pass.make(out, pass.get(x).rows);

export const rowOf = ({ data, dim }: Matrix, r: number): Matrix => {
  return { data: data.subarray(r * dim, (r + 1) * dim), rows: 1, dim };
};

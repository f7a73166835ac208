/** What a run of the steps works on: its rows, its activations, and what is kept of their sequences. */
import type { RopeTable } from "../../program/rope.ts";
import type { Buf, RopeScaling, Step } from "../../program/step.ts";
import type { WeightReader } from "./weights.ts";

/** An activation of this pass. */
export interface Matrix {
  readonly data: Float32Array; // (rows, dim), perhaps longer
  readonly rows: number;
  readonly dim: number;
}

/** Keys, rotated, and values of one layer. */
export interface KvLayer {
  readonly k: Float32Array; // (slots, ctxLen, nKvHeads · keyDim)
  readonly v: Float32Array; // (slots, ctxLen, nKvHeads · valueDim); empty where values are part of the keys
}

/** Everything that a run of the steps reads and writes. */
export interface Pass {
  readonly tokens: Int32Array; // (rows), −1 for a row that is given as a vector
  /** What the rows begin with, where the steps begin with an `input`. */
  readonly input: Float32Array; // (rows, dim)
  /** What the rows without an id begin with. */
  readonly vectors: Float32Array; // (rows without an id, vectorDim)
  readonly vectorDim: number;
  readonly slots: Int32Array; // (rows)
  /** Which entry of the batch a row belongs to; rows of one are neighbours. */
  readonly sequences: Int32Array; // (rows)
  /** Where a row's keys and values lie in its slot: how many tokens are before it. */
  readonly cells: Int32Array; // (rows)
  /** The first cell of a row's span, or its own. */
  readonly firstCells: Int32Array; // (rows)
  /** The last cell that attention of a row sees: its own, or the last of its span. */
  readonly lastCells: Int32Array; // (rows)
  /** Time, height and width. */
  readonly positions: Int32Array; // (rows, 3)
  /** Indexes of the rows whose logits or states are wanted. */
  readonly wanted: Int32Array;
  readonly ctxLen: number;
  /** Scratch of one head's attention. */
  readonly scores: Float64Array; // (ctxLen)
  /** By layer. */
  readonly kv: ReadonlyMap<number, KvLayer>;
  /** What convolutions and recurrences keep: (slots, values of the state). */
  readonly kept: ReadonlyMap<Step, Float32Array>;
  readonly ropes: ReadonlyMap<RopeScaling, RopeTable>;
  readonly weights: WeightReader;
  /** Room for `rows` rows of a buffer, contents undefined. */
  make(buf: Buf, rows: number): Matrix;
  /** What an earlier step wrote. */
  get(buf: Buf): Matrix;
}

/** Where `out` goes: `x` itself where a step works in place. */
export const madeLike = (pass: Pass, out: Buf, x: Buf): Matrix =>
  out.name === x.name ? pass.get(x) : pass.make(out, pass.get(x).rows);

export const rowOf = ({ data, dim }: Matrix, r: number): Matrix => {
  return { data: data.subarray(r * dim, (r + 1) * dim), rows: 1, dim };
};

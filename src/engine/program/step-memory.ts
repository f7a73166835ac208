/** Steps that read rows from outside of their sequence: cross attention. */
import type { Buf } from "./step-parts.ts";

export type MemoryStep =
  /**
   * Attention of each row over all rows of its sequence's memory (`Rows.memory`), whose keys and values `remember` has
   * stored for `layer`: scores = scale · q·k, softmax, weighted sum of v; zeros without a memory. Heads as in
   * `attention`.
   */
  | {
      readonly op: "crossAttention";
      readonly out: Buf;
      readonly q: Buf;
      readonly layer: number;
      readonly nHeads: number;
      readonly nKvHeads: number;
      readonly headDim: number;
      readonly scale: number;
      /** Maximum rows of a memory. */
      readonly rows: number;
    }
  /** Stores k and v of a memory's rows for `layer`. Only in the steps of `Program.memory`. */
  | {
      readonly op: "remember";
      /** (rows, nKvHeads · headDim), like v */
      readonly k: Buf;
      readonly v: Buf;
      readonly layer: number;
      readonly nKvHeads: number;
      readonly headDim: number;
    }
  /** x[r] ← 0 for the rows of a sequence without a memory. */
  | { readonly op: "keepRemembering"; readonly x: Buf };

/** Steps of attention over compressed blocks of positions, each of which becomes one vector. */
import type { Buf, Weight } from "./step-parts.ts";

export type CompressedStep =
  /**
   * Each channel of a block of `ratio` positions becomes the average of x, weighted by softmax(gate + bias) over the
   * block's rows; the row that ends a block has the result, and other rows have zeros. With `overlap` x and gate are
   * twice as wide as out: their second halves belong to the row's block, and their first halves to the next one, whose
   * softmax goes over both. Keeps the rows that later results need.
   */
  | {
      readonly op: "compress";
      readonly out: Buf;
      readonly x: Buf;
      readonly gate: Buf;
      /** (ratio, x.dim) */
      readonly bias: Weight;
      readonly layer: number;
      readonly ratio: number;
      readonly overlap: boolean;
    }
  /**
   * Attention of all heads over one key per position, which is also its value, and over one entry per block of `ratio`
   * positions, in one softmax. Stores k and entries of the rows in the KV cache; an entry is read if its row ends a
   * block. A row at position p attends to positions p − window + 1 … p and to the entries of blocks that end at p or
   * earlier, with `chosen` to these only (as `choosePositions` writes them).
   */
  | {
      readonly op: "compressedAttention";
      readonly out: Buf;
      readonly q: Buf;
      /** (rows, headDim), like entries */
      readonly k: Buf;
      readonly entries: Buf;
      readonly layer: number;
      readonly nHeads: number;
      readonly headDim: number;
      readonly scale: number;
      readonly window: number;
      readonly ratio: number;
      /** A score per head that takes part in the softmax but has no value, (nHeads). */
      readonly sinks?: Weight;
      readonly chosen?: Buf;
    };

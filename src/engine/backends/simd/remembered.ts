/** The memories of slots: their caches, and tables with the memory of each row of a pass. */
import type { Program } from "../../program/backend.ts";
import { memoryLayers } from "../../program/memory.ts";
import { allocateLayer, fillContext, memoryType, type KvLayer, type KvShape, type KvType } from "./kv.ts";
import type { Block, Memory } from "./memory.ts";
import type { PassRows } from "./rows.ts";

/** The caches of cross attention, and the tables that its kernels read. */
export interface Remembered {
  /** By layer: keys and values of each slot's memory, (slots, kvHeads, padded rows, dim). */
  readonly layers: ReadonlyMap<number, KvLayer>;
  /** i32 (rows of a pass): the rows of a row's memory. */
  readonly lengths: Block;
  /** f32 (rows of a pass): 1 for a row with a memory, 0 for others. */
  readonly shares: Block;
  /** Positions of a slot, padded. */
  readonly ctxLen: number;
  readonly type: KvType;
  fill(rows: PassRows): void;
}

/** Undefined for a program without cross attention. */
export function makeRemembered(
  { steps, memory: program }: Pick<Program, "steps" | "memory">,
  memory: Memory,
  { maxRows, kv }: { maxRows: number; kv: KvShape },
): Remembered | undefined {
  if (!program) return undefined;
  const shape = { ...kv, ctxLen: fillContext(program.rows), type: memoryType(kv.type) };
  const [lengths, shares] = [memory.allocate(4 * maxRows, "lengths"), memory.allocate(4 * maxRows, "shares")];
  const counts = new Int32Array(lengths.view.buffer, lengths.view.byteOffset, maxRows);
  const factors = new Float32Array(shares.view.buffer, shares.view.byteOffset, maxRows);
  return {
    layers: new Map(
      memoryLayers(steps).map(({ layer, nKvHeads: kvHeads, headDim }) => [
        layer,
        allocateLayer(memory, shape, { kvHeads, headDim, valueDim: headDim }),
      ]),
    ),
    lengths,
    shares,
    ctxLen: shape.ctxLen,
    type: shape.type,
    fill({ remembered }) {
      for (let row = 0; row < remembered.length; row++) {
        counts[row] = remembered[row]!;
        factors[row] = remembered[row]! > 0 ? 1 : 0;
      }
    },
  };
}

/** Returns whether some row of a pass has a memory; otherwise cross attention is left out. */
export const remembers = ({ remembered }: PassRows): boolean => remembered.some((count) => count > 0);

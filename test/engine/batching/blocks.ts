/** Blocks of keys and values in memory: the tokens themselves. */
import type { KvBlocks, PackedCheckpoints } from "../../../src/engine/program/kept-slots.ts";

/** Blocks of slots that hold the tokens themselves. */
export function makeBlocks(length: number, checkpoints?: PackedCheckpoints): { blocks: KvBlocks; slots: number[][] } {
  const slots: number[][] = [[], []];
  const blocks: KvBlocks = {
    length,
    layout: "test",
    checkpoints,
    bytesOf: (count) => count,
    read: (slot, first, count) => Uint8Array.from(slots[slot]!.slice(first, first + count)),
    write: (slot, { first, bytes }) => void slots[slot]!.splice(first, bytes.length, ...bytes),
  };
  return { blocks, slots };
}

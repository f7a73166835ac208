/** The keys and values of slots' memories: a run names a memory, and a slot that holds another one computes it. */
import { batchWords, writeBatch, type BatchRow } from "../../../../kernels/wgsl/batch.ts";
import type { LoadOptions, Memory, Program, StateRows } from "../../program/backend.ts";
import { memoryDim } from "../../program/memory.ts";
import { HeldMemories } from "../held-memories.ts";
import type { Device } from "./device.ts";
import type { Remembering } from "./plan.ts";
import { encodeDispatches } from "./record.ts";

export interface DeviceMemories {
  /** Submits the computation of the memories that a batch names and its slots do not hold. */
  hold(batch: readonly StateRows[]): Promise<void>;
}

interface MemoriesOptions {
  readonly remembering: Remembering;
  /** Throws once the session is closed. */
  readonly checkOpen: () => void;
  /** Called before a memory is written. */
  readonly onWrite: () => void;
}

export function makeMemories(
  { device, program, options }: { device: Device; program: Program; options: Pick<LoadOptions, "slots"> },
  { remembering, checkOpen, onWrite }: MemoriesOptions,
): DeviceMemories {
  const { pass, input, rowsMax, reach } = remembering;
  const held = new HeldMemories(program.memory, options);
  const dim = memoryDim(program.memory!); // `remembering` exists, so the program has a memory
  const words = new Uint32Array(batchWords(rowsMax));
  const compute = (slot: number, { rows }: Memory): void => {
    onWrite();
    const total = rows.length / dim;
    for (let first = 0; first < total; first += rowsMax) {
      const count = Math.min(rowsMax, total - first);
      const values = rows.subarray(first * dim, (first + count) * dim) as Float32Array<ArrayBuffer>; // not shared
      device.gpu.queue.writeBuffer(input, 0, values);
      writeBatch(rowsOf(slot, first, count), words);
      device.gpu.queue.writeBuffer(pass.batch, 0, words, 0, batchWords(count));
      const encoder = device.gpu.createCommandEncoder();
      const counts = { all: count, wanted: 0, given: 0, sequences: 1, splits: 1, memorySplits: 1, forgotten: 0 };
      encodeDispatches(encoder, pass, counts, { first: 0, end: pass.dispatches.length });
      device.submit(encoder.finish());
    }
  };
  return {
    async hold(batch) {
      for (const { slot, memory } of batch) {
        if (!memory) continue;
        await reach({ slots: slot + 1, positions: held.rowsOf(memory) });
        checkOpen();
        held.hold(slot, memory, () => compute(slot, memory));
      }
    },
  };
}

/** Rows of a memory, each at its place. */
const rowsOf = (slot: number, first: number, count: number): BatchRow[] =>
  Array.from({ length: count }, (_, i) => {
    const cell = first + i;
    const span = { first: cell, end: cell + 1 };
    const own = { slot, cell, span, position: [cell, cell, cell] as const };
    return { ...own, token: 0, first: 0, end: count, wanted: false, remembered: 0, adapters: [] };
  });

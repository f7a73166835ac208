/** Saves and restores a slot's convolution and recurrent states. */
import { assert } from "../../../base/index.ts";
import type { Checkpoint, Checkpoints, PackedCheckpoints, StateRows } from "../../program/backend.ts";
import type { Block } from "./memory.ts";

interface SimdCheckpoint extends Checkpoint {
  readonly values: readonly Uint8Array[];
}

export interface SlotStates extends Checkpoints, PackedCheckpoints {
  /** Throws if a run does not continue from the kept states. */
  check(batch: readonly StateRows[]): void;
  ran(batch: readonly StateRows[]): void;
  shifted(slot: number, length: number): void;
}

/** @param kept (slots, values of the state) each */
export function makeSlotStates(kept: readonly Block[], slots: number): SlotStates {
  const lengths = new Int32Array(slots); // length of each slot in tokens
  const of = ({ view }: Block, slot: number): Uint8Array => {
    const bytes = view.length / slots;
    return view.subarray(slot * bytes, (slot + 1) * bytes);
  };
  return {
    check(batch) {
      for (const { slot, start } of batch) {
        const length = lengths[slot];
        assert(
          start === 0 || start === length,
          `slot ${slot}: rows from ${start} on, but its states stand at ${length}`,
        );
      }
    },
    ran(batch) {
      for (const { slot, start, tokens } of batch) lengths[slot] = start + tokens.length;
    },
    shifted: (slot, length) => void (lengths[slot] = length),
    save(slot, length, into): SimdCheckpoint {
      assert(lengths[slot] === length, `slot ${slot} holds ${lengths[slot]} tokens, not ${length}`);
      const { values = kept.map((block) => of(block, slot).slice()) } = (into ?? {}) as Partial<SimdCheckpoint>;
      if (into) for (const [i, block] of kept.entries()) values[i]!.set(of(block, slot));
      return { length, values, bytes: values.reduce((sum, { byteLength }) => sum + byteLength, 0) };
    },
    restore(slot, checkpoint) {
      const { values, length } = checkpoint as SimdCheckpoint; // made by `save`
      for (const [i, block] of kept.entries()) of(block, slot).set(values[i]!);
      lengths[slot] = length;
    },
    pack: (checkpoint) => joined((checkpoint as SimdCheckpoint).values), // made by `save` or `unpack`
    unpack(length, bytes): SimdCheckpoint | undefined {
      const sizes = kept.map(({ view }) => view.length / slots);
      if (bytes.length !== sizes.reduce((sum, size) => sum + size, 0)) return undefined;
      let at = 0;
      return { length, values: sizes.map((size) => bytes.slice(at, (at += size))), bytes: bytes.length };
    },
  };
}

function joined(values: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(values.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const value of values) {
    bytes.set(value, at);
    at += value.length;
  }
  return bytes;
}

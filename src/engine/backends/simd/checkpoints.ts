/** Saves and restores a slot's convolution and recurrent states. */
import type { Checkpoint, Checkpoints, PackedCheckpoints } from "../../program/kept-slots.ts";
import { makeSlotLengths, type SlotLengths } from "../slot-lengths.ts";
import type { Block } from "./memory.ts";

interface SimdCheckpoint extends Checkpoint {
  readonly values: readonly Uint8Array[];
}

export interface SlotStates extends Checkpoints, PackedCheckpoints, Pick<SlotLengths, "check" | "ran" | "set"> {}

/** @param kept (slots, values of the state) each */
export function makeSlotStates(kept: readonly Block[], slots: number): SlotStates {
  const lengths = makeSlotLengths(slots);
  const of = ({ view }: Block, slot: number): Uint8Array => {
    const bytes = view.length / slots;
    return view.subarray(slot * bytes, (slot + 1) * bytes);
  };
  return {
    ...lengths,
    save(slot, length, into): SimdCheckpoint {
      lengths.expect(slot, length);
      const { values = kept.map((block) => of(block, slot).slice()) } = (into ?? {}) as Partial<SimdCheckpoint>;
      if (into) for (const [i, block] of kept.entries()) values[i]!.set(of(block, slot));
      return { length, values, bytes: values.reduce((sum, { byteLength }) => sum + byteLength, 0) };
    },
    restore(slot, checkpoint) {
      const { values, length } = checkpoint as SimdCheckpoint; // made by `save`
      for (const [i, block] of kept.entries()) of(block, slot).set(values[i]!);
      lengths.set(slot, length);
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

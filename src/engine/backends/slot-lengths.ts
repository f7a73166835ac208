/** The number of tokens in each slot of a session whose states continue only from the slot's end. */
import { assert } from "../../base/index.ts";
import type { StateRows } from "../program/backend.ts";

/** The length of a slot whose states are unknown: the next run begins at 0, or at a checkpoint. */
const UNKNOWN = -1;

export interface SlotLengths {
  /** Throws if a run does not continue from the kept states. */
  check(batch: readonly StateRows[]): void;
  ran(batch: readonly StateRows[]): void;
  /** Notes that a run ended early: the states of its slots are unknown. */
  failed(batch: readonly StateRows[]): void;
  set(slot: number, length: number): void;
  /** Throws unless a slot holds this many tokens. */
  expect(slot: number, length: number): void;
}

export function makeSlotLengths(slots: number): SlotLengths {
  const lengths = new Int32Array(slots);
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
    failed(batch) {
      for (const { slot } of batch) lengths[slot] = UNKNOWN;
    },
    set: (slot, length) => void (lengths[slot] = length),
    expect: (slot, length) =>
      assert(lengths[slot] === length, `slot ${slot} holds ${lengths[slot]} tokens, not ${length}`),
  };
}

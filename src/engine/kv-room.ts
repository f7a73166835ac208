/**
 * Whether there is memory for what sequences add to their slots. A slot's cache is reserved whole and gets memory where
 * it is written: where the slots together would take more than they may, those that nobody uses give theirs back, and
 * after them the sequence that came last waits until there is room again.
 */
import type { Growth } from "../backend/backend.ts";
import type { Work } from "./scheduler.ts";
import type { Sequence } from "./sequence.ts";
import { forget, type Slot } from "./slots.ts";

/** Tokens that memory is counted in. */
const UNIT = 64;

export interface KvRoom {
  /** Whether a sequence may begin beside those that run, whose prompts may not be evaluated yet. */
  admits(sequence: Sequence, running: readonly Sequence[]): boolean;
  /** Makes room for a step; else says which sequence must stop until there is some. */
  victim(work: Work, running: readonly Sequence[]): Sequence | undefined;
}

/** @param slots of the session @param bytesMax of all slots; one sequence alone may take more */
export function makeKvRoom({ tokenBytes, release }: Growth, slots: readonly Slot[], bytesMax: number): KvRoom {
  const most = Math.floor(bytesMax / tokenBytes);
  const taken = new Map<Slot, number>(); // tokens that memory is there for
  const unitsOf = (tokens: number): number => Math.ceil(tokens / UNIT) * UNIT;
  const sumOf = (which: readonly Slot[]): number => which.reduce((sum, slot) => sum + (taken.get(slot) ?? 0), 0);

  /** False where a slot cannot hold so many tokens beside the others in use. */
  const takes = (slot: Slot, tokens: number): boolean => {
    const before = taken.get(slot) ?? 0;
    const wanted = Math.max(before, unitsOf(tokens));
    const others = slots.filter((other) => other !== slot);
    const idle = others.filter((other) => !other.busy && taken.has(other)).toSorted((a, b) => b.usedAt - a.usedAt);
    while (idle.length > 0 && sumOf(others) + wanted > most) {
      const oldest = idle.pop()!; // not empty
      release(oldest.index);
      forget(oldest);
      taken.delete(oldest);
    }
    const busy = sumOf(others);
    if (wanted > before && busy > 0 && busy + wanted > most) return false;
    taken.set(slot, wanted);
    return true;
  };

  return {
    admits({ tokens }, running) {
      if (running.length === 0) return true;
      const wanted = running.map((each) => Math.max(each.slot ? sumOf([each.slot]) : 0, unitsOf(each.tokens.length)));
      return wanted.reduce((sum, count) => sum + count, unitsOf(tokens.length + UNIT)) <= most;
    },
    victim({ rows, sequences }, running) {
      for (const [i, sequence] of sequences.entries()) {
        const { start, tokens } = rows[i]!;
        if (sequence.slot && !takes(sequence.slot, start + tokens.length)) return running.at(-1);
      }
      return undefined;
    },
  };
}

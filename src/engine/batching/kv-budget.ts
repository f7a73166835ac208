/**
 * The budget of KV cache memory. A slot's cache is reserved as a whole and gets memory where it is written. When the
 * slots together would exceed the budget, idle slots give up their memory first; then the newest sequence waits until
 * there is room again. If the machine lacks granted memory, because other programs have taken it, the sequence that
 * needs it fails: otherwise the system would kill the whole process.
 */
import type { Growth } from "../program/kept-slots.ts";
import { AppError } from "../../base/index.ts";
import type { Work } from "./scheduler.ts";
import type { Sequence } from "./sequence.ts";
import { forget, type Slot } from "./slots.ts";

/** Granularity of the accounting, in tokens. */
const UNIT = 64;
/** Bytes left for the rest of the process. */
const RESERVE = 64 * 2 ** 20;

export interface KvBudget {
  /**
   * Returns whether a sequence may begin while others run, whose prompts may not be evaluated completely yet.
   */
  admits(sequence: Sequence, running: readonly Sequence[]): boolean;
  /** Makes room for a step; if that is impossible, returns the sequence that must wait or fail. */
  victim(work: Work, running: readonly Sequence[]): Victim | undefined;
  /** Accounts for a text to embed, even beyond the budget. */
  embeds(slot: Slot, tokens: number): void;
  /** Frees the memory of an unused slot. */
  release(slot: Slot): void;
}

interface Victim {
  readonly sequence: Sequence;
  /** The error with which the sequence fails; undefined: it waits. */
  readonly error?: AppError;
}

interface RoomOptions {
  readonly slots: readonly Slot[];
  /** For all slots together; a single sequence may take more. */
  readonly bytesMax: number;
  /** Memory that the process can still allocate; undefined: unknown. */
  readonly freeBytes?: (() => number) | undefined;
}

export function makeKvBudget({ tokenBytes, release }: Growth, { slots, bytesMax, freeBytes }: RoomOptions): KvBudget {
  const most = Math.floor(bytesMax / tokenBytes);
  const taken = new Map<Slot, number>(); // tokens that have memory
  const unitsOf = (tokens: number): number => Math.ceil(tokens / UNIT) * UNIT;
  const sumOf = (which: readonly Slot[]): number => which.reduce((sum, slot) => sum + (taken.get(slot) ?? 0), 0);

  /** Bytes that the machine lacks for this many additional tokens. */
  const lacking = (tokens: number): number =>
    freeBytes ? Math.max(0, tokens * tokenBytes + RESERVE - freeBytes()) : 0;

  const giveBack = (slot: Slot): void => {
    release(slot.index);
    forget(slot);
    taken.delete(slot);
  };

  /**
   * The reason why a slot cannot hold this many tokens: the budget that other busy slots leave, or the machine's
   * memory.
   */
  const lackOf = (slot: Slot, tokens: number): "room" | AppError | undefined => {
    const before = taken.get(slot) ?? 0;
    const wanted = Math.max(before, unitsOf(tokens));
    if (wanted === before) return undefined; // true in nearly every step
    const others = slots.filter((other) => other !== slot);
    const idle = others.filter((other) => !other.busy && taken.has(other)).toSorted((a, b) => b.usedAt - a.usedAt);
    while (idle.length > 0 && (sumOf(others) + wanted > most || lacking(wanted - before) > 0)) {
      giveBack(idle.pop()!); // the oldest
    }
    const busy = sumOf(others);
    if (busy > 0 && busy + wanted > most) return "room";
    const lacks = lacking(wanted - before);
    if (lacks > 0) return outOfMemory(tokens, { wants: (wanted - before) * tokenBytes + RESERVE, lacks });
    taken.set(slot, wanted);
    return undefined;
  };

  return {
    release: giveBack,
    embeds(slot, tokens) {
      if (lackOf(slot, tokens)) taken.set(slot, unitsOf(tokens));
    },
    admits({ tokens }, running) {
      if (running.length === 0) return true;
      const wanted = running.map((each) => Math.max(each.slot ? sumOf([each.slot]) : 0, unitsOf(each.tokens.length)));
      return wanted.reduce((sum, count) => sum + count, unitsOf(tokens.length + UNIT)) <= most;
    },
    victim({ rows, sequences }, running) {
      for (const [i, sequence] of sequences.entries()) {
        const { start, tokens } = rows[i]!;
        const lack = sequence.slot && lackOf(sequence.slot, start + tokens.length);
        if (lack === "room") return { sequence: running.at(-1) ?? sequence };
        if (lack) return { sequence, error: lack };
      }
      return undefined;
    },
  };
}

function outOfMemory(tokens: number, { wants, lacks }: { wants: number; lacks: number }): AppError {
  const [expected, got] = [wants, wants - lacks].map((bytes) => `${Math.round(bytes / 2 ** 20)} MiB`);
  return new AppError(
    "busy",
    `out of memory: keys and values of ${tokens} tokens: expected ${expected} free, got ${got}`,
  );
}

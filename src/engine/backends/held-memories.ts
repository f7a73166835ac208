/** Tracks the memory that each slot of a session holds. */
import type { LoadOptions, Memory, MemoryProgram, StateRows } from "../program/backend.ts";
import { memoryDim } from "../program/memory.ts";

/** The ids of the memories whose keys and values are in the slots. */
export class HeldMemories {
  readonly #ids: (string | undefined)[];
  readonly #dim: number;

  constructor(program: MemoryProgram | undefined, { slots }: Pick<LoadOptions, "slots">) {
    this.#ids = Array.from({ length: slots }, () => undefined);
    this.#dim = program ? memoryDim(program) : 0;
  }

  /** Number of rows of a memory; 0 for none. */
  rowsOf(memory: Memory | undefined): number {
    return memory ? memory.rows.length / this.#dim : 0;
  }

  /** The first slot that holds a memory; −1: no slot does. */
  holderOf({ id }: Memory): number {
    return this.#ids.indexOf(id);
  }

  /** A memory's rows as a batch entry for the program that stores its keys and values. */
  entryOf(slot: number, memory: Memory): StateRows {
    const tokens = new Int32Array(this.rowsOf(memory));
    return { slot, start: 0, tokens, input: memory.rows, states: "none" };
  }

  /** Runs `compute` unless the slot holds that memory. After a failed computation the slot holds none. */
  hold(slot: number, memory: Memory, compute: () => void): void {
    for (const done of this.holdInParts(slot, memory, () => [compute()])) void done;
  }

  /** As `hold`, for a computation in parts, which may be given up. */
  *holdInParts(slot: number, { id }: Memory, compute: () => Iterable<void>): Generator<void> {
    if (this.#ids[slot] === id) return;
    this.#ids[slot] = undefined;
    yield* compute();
    this.#ids[slot] = id;
  }
}

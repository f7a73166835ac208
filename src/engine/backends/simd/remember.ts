/** Fills slots with the keys and values of memories. */
import type { LoadOptions, Program, StateRows } from "../../program/backend.ts";
import { memoryDim } from "../../program/memory.ts";
import { HeldMemories } from "../held-memories.ts";
import { copyLayers } from "./kv.ts";
import type { Memory } from "./memory.ts";
import type { Lowered, Passes } from "./passes.ts";
import type { Remembered } from "./remembered.ts";
import { passesOf, type RowLimits } from "./rows.ts";

interface RememberParts {
  readonly passes: Passes;
  readonly limits: RowLimits;
  /** The steps that remember, as records. */
  readonly lowered: Lowered;
  readonly memory: Memory;
  readonly remembered: Remembered | undefined;
}

/** Rows of a part, for which others wait. */
const PART_ROWS = 128;

/** Computes the memories that a batch names and its slots lack, in parts; other passes may run in between. */
export function makeRemember(
  program: Program,
  { slots }: Pick<LoadOptions, "slots">,
  { passes, limits, lowered, memory: room, remembered }: RememberParts,
): (batch: readonly StateRows[]) => Iterable<void> {
  const { memory: own } = program;
  const held = new HeldMemories(own, { slots });
  const place = { ...room.allocate(64, "results"), dim: 1 }; // empty: these steps return no result
  const maxRows = Math.min(PART_ROWS, limits.maxRows);
  const given = { ...limits, maxRows, inputDim: own ? memoryDim(own) : 0, vectorDim: 0 };
  function* compute(entry: StateRows): Generator<void> {
    for (const pass of passesOf([entry], given)) yield passes.run(pass, lowered, place);
  }
  function* copy(which: { from: number; to: number; length: number }): Generator<void> {
    const { layers, ctxLen, type } = remembered!; // called only for a program with a memory
    yield copyLayers([...layers.values()], { slots, ctxLen, type }, which);
  }
  return function* remember(batch) {
    for (const { slot, memory } of batch) {
      if (!memory) continue;
      const from = held.holderOf(memory);
      const length = held.rowsOf(memory);
      yield* held.holdInParts(slot, memory, () =>
        from < 0 ? compute(held.entryOf(slot, memory)) : copy({ from, to: slot, length }),
      );
    }
  };
}

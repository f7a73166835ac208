/** Fills slots with the keys and values of memories. */
import type { LoadOptions, Program, StateRows } from "../../program/backend.ts";
import { memoryDim } from "../../program/memory.ts";
import { HeldMemories } from "../held-memories.ts";
import type { Memory } from "./memory.ts";
import type { Lowered, Passes } from "./passes.ts";
import { passesOf, type RowLimits } from "./rows.ts";

interface RememberParts {
  readonly passes: Passes;
  readonly limits: RowLimits;
  /** The steps that remember, as records. */
  readonly lowered: Lowered;
  readonly memory: Memory;
}

/** Computes the memories that a batch names and its slots do not hold yet. */
export function makeRemember(
  program: Program,
  { slots }: Pick<LoadOptions, "slots">,
  { passes, limits, lowered, memory: room }: RememberParts,
): (batch: readonly StateRows[]) => void {
  const { memory: own } = program;
  const held = new HeldMemories(own, { slots });
  const place = { ...room.allocate(64, "results"), dim: 1 }; // empty: these steps return no result
  const given = { ...limits, inputDim: own ? memoryDim(own) : 0, vectorDim: 0 };
  return (batch) => {
    for (const { slot, memory } of batch) {
      if (!memory) continue;
      held.hold(slot, memory, () => {
        for (const pass of passesOf([held.entryOf(slot, memory)], given)) passes.run(pass, lowered, place);
      });
    }
  };
}

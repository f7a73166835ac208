/** Where the final hidden states of a program are made: everything behind that is the way to the logits. */
import { assert } from "../../base/index.ts";
import type { Program } from "./backend.ts";
import { writtenBy } from "./describe.ts";

/** How many of the steps make the final hidden states. */
export function statesEnd({ steps, states }: Pick<Program, "steps" | "states">): number {
  const last = steps.findLastIndex((step) => writtenBy(step).name === states.name);
  assert(last >= 0, `no step writes the hidden states, '${states.name}'`);
  return last + 1;
}

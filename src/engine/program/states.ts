/** Finds the step after which the final hidden states are complete; the steps after it compute the logits. */
import { assert } from "../../base/index.ts";
import type { Program } from "./backend.ts";
import { writtenBy } from "./describe.ts";

/** The number of steps that compute the final hidden states. */
export function statesEnd({ steps, states }: Pick<Program, "steps" | "states">): number {
  const last = steps.findLastIndex((step) => writtenBy(step).name === states.name);
  assert(last >= 0, `no step writes the hidden states, '${states.name}'`);
  return last + 1;
}

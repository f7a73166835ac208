/** What a step is called in errors: its op, and the tensors or the layer that tell a person where it is. */
import { mixesRows, weightsOf } from "./describe.ts";
import type { Step } from "./step.ts";

/** @param tensors those that the part of the step which is meant reads; left out, or none: all that the step has */
export function stepName(step: Step, tensors: readonly string[] = []): string {
  if (mixesRows(step) && "layer" in step) return `${step.op} of layer ${step.layer}`;
  const names = new Set(tensors.length > 0 ? tensors : weightsOf(step).map(({ name }) => name));
  return names.size > 0 ? `${step.op} with ${[...names].map((name) => `'${name}'`).join(", ")}` : step.op;
}

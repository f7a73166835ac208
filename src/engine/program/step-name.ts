/** The name of a step in errors: its op, and the tensors or the layer that locate it. */
import { mixesRows, weightsOf } from "./describe.ts";
import type { Step } from "./step.ts";

/** @param tensors tensors of the relevant part of the step; omitted or empty: all of the step's */
export function stepName(step: Step, tensors: readonly string[] = []): string {
  if (mixesRows(step) && "layer" in step) return `${step.op} of layer ${step.layer}`;
  const names = new Set(tensors.length > 0 ? tensors : weightsOf(step).map(({ name }) => name));
  return names.size > 0 ? `${step.op} with ${[...names].map((name) => `'${name}'`).join(", ")}` : step.op;
}

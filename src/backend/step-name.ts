/** What a step is called in errors: its op, and the tensors or the layer that tell a person where it is. */
import type { Step, Weight } from "./step.ts";

/** @param tensors those that the part of the step which is meant reads; left out, or none: all that the step has */
export function stepName(step: Step, tensors: readonly string[] = []): string {
  if (step.op === "attention") return `${step.op} of layer ${step.layer}`;
  const names = new Set(tensors.length > 0 ? tensors : tensorsOf(step));
  return names.size > 0 ? `${step.op} with ${[...names].map((name) => `'${name}'`).join(", ")}` : step.op;
}

const tensorsOf = (step: Step): string[] =>
  Object.values<unknown>({ ...step }).flatMap((part) => (isWeight(part) ? [part.name] : []));

const isWeight = (part: unknown): part is Weight => typeof part === "object" && part !== null && "quant" in part;

/** Gated steps for backends without `swiglu_oai` and without experts that lack a gate. */
import type { Activation, Step, Weight } from "../src/engine/program/step.ts";

type Gated = Extract<Step, { op: "moe" | "gatedMlp" }>;

/** The same step; a backend refuses others before it lowers any. */
export function plainGating<S extends Gated>(step: S): S & { readonly act: Activation; readonly gate: Weight } {
  const { act, gate } = step;
  if (act === "swiglu_oai" || gate === undefined) throw new Error(`invariant: ${step.op} with ${act} was refused`);
  return { ...step, act, gate };
}

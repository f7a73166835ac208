/** The end of a program as a separate one: from final hidden states, which are an input, to logits. */
import type { Program } from "./backend.ts";
import { statesEnd } from "./states.ts";

export function headOf(program: Program): Program {
  const { states, steps } = program;
  const given = { name: "given", dim: states.dim };
  return {
    ...program,
    steps: [{ op: "input", out: given }, { op: "takeRows", out: states, x: given }, ...steps.slice(statesEnd(program))],
  };
}

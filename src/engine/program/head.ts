/** Makes a program of the steps after the final hidden states: its input is the states, its output the logits. */
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

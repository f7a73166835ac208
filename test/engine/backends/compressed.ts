/** A small program whose attention reads chosen entries of blocks, with states of its own. */
import type { Program } from "../../../src/engine/program/backend.ts";
import { conformanceCases } from "../../conformance/cases.ts";

export function compressedProgram(): Program {
  const name = "compressedAttention: 3 chosen blocks, a long context";
  return conformanceCases().find((each) => each.name === name)!.program;
}

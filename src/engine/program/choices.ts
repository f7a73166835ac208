/** Program → program for short contexts: removes the choice of positions if all would be chosen. */
import type { Program } from "./backend.ts";
import { readsOf, stateOf, writtenBy } from "./describe.ts";
import type { Step } from "./step.ts";

/** The program itself, if its layers choose positions in a context of that length. */
export function withoutChoices(program: Program, ctxLen: number): Program {
  const { choosesAbove = 0, ...rest } = program;
  if (ctxLen > choosesAbove) return program;
  const alive = new Set([program.states.name, program.logits?.name]);
  const steps: Step[] = [];
  for (const step of program.steps.toReversed().map(plain)) {
    const isRead = alive.has(writtenBy(step).name) || stateOf(step)?.kind === "kv";
    if (step.op === "choosePositions" || !isRead) continue;
    alive.delete(writtenBy(step).name);
    for (const { name } of readsOf(step)) alive.add(name);
    steps.push(step);
  }
  return { ...rest, steps: steps.toReversed() };
}

/** The step without its choice: it attends to every position. */
function plain(step: Step): Step {
  if (step.op === "compressedAttention") {
    const { chosen: _chosen, ...rest } = step;
    return rest;
  }
  if (step.op !== "attention" && step.op !== "latentAttention") return step;
  const { chosen: _chosen, chosenBlock: _block, ...rest } = step;
  return rest;
}

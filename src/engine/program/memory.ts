/**
 * The memory of a sequence: rows of an image or a recording that its rows attend to by cross attention. A session keeps
 * keys and values of one memory per slot, and computes them when a run names another memory.
 */
import type { MemoryProgram, Program } from "./backend.ts";
import { readsOf, stateOf, writtenBy } from "./describe.ts";
import type { Step } from "./step.ts";

/** Keys and values that a slot keeps of its memory, for one step of cross attention. */
export interface MemoryLayer {
  readonly layer: number;
  readonly nKvHeads: number;
  readonly headDim: number;
  readonly rows: number;
}

export const memoryLayers = (steps: readonly Step[]): MemoryLayer[] =>
  steps.flatMap((step) => (step.op === "crossAttention" ? [step] : []));

/** Values per row of a memory. */
export function memoryDim({ steps: [first] }: MemoryProgram): number {
  return first?.op === "input" ? first.out.dim : 0;
}

/**
 * The part of a memory's program that the cross attention of some steps needs; undefined: these steps have no cross
 * attention.
 */
export function memoryFor(steps: readonly Step[], memory: MemoryProgram | undefined): MemoryProgram | undefined {
  const layers = new Set(memoryLayers(steps).map(({ layer }) => layer));
  if (!memory || layers.size === 0) return undefined;
  const own = memory.steps.filter((step) => step.op !== "remember" || layers.has(step.layer));
  return { ...memory, steps: living(own, new Set()) };
}

/**
 * A program for rows without a memory: cross attention would give zeros, so it is removed together with the additions
 * of its result. The same program if other values are made of those zeros, as by a product with a bias.
 */
export function withoutMemory(program: Program): Program {
  const { memory, ...rest } = program;
  if (!memory) return program;
  const zeros = new Set<string>();
  let isRead = false;
  const steps = program.steps.filter((step) => {
    if (step.op === "crossAttention" || step.op === "keepRemembering") {
      zeros.add(writtenBy(step).name);
      return false;
    }
    if (step.op === "add" && step.out.name === step.a.name && zeros.has(step.b.name)) return false;
    if (step.op === "linear" && !step.b && zeros.has(step.x.name)) {
      zeros.add(step.out.name);
      return false;
    }
    isRead ||= readsOf(step).some(({ name }) => zeros.has(name));
    zeros.delete(writtenBy(step).name);
    return true;
  });
  if (isRead) return program;
  const wanted = [program.states, program.logits].flatMap((buf) => buf?.name ?? []);
  return { ...rest, steps: living(steps, new Set(wanted)) };
}

/** The steps whose results are read, or that keep state. */
function living(steps: readonly Step[], wanted: ReadonlySet<string>): Step[] {
  const alive = new Set(wanted);
  const kept: Step[] = [];
  for (const step of steps.toReversed()) {
    const { name } = writtenBy(step);
    if (!alive.has(name) && step.op !== "remember" && stateOf(step) === undefined) continue;
    if (!readsOf(step).some((buf) => buf.name === name)) alive.delete(name);
    for (const buf of readsOf(step)) alive.add(buf.name);
    kept.push(step);
  }
  return kept.toReversed();
}

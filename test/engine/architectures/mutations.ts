/** Mistakes that references must reveal: programs made wrong on purpose, in one part each. */
import type { Program } from "../../../src/engine/program/backend.ts";
import type { RopeScaling, Step } from "../../../src/engine/program/step.ts";

interface Mutation {
  readonly name: string;
  /** The program with the mistake; undefined if it has no such part. */
  apply(program: Program): Program | undefined;
}

/** Wider windows, which some architectures have whatever a file says, have no effect on a short text. */
const WINDOW_MAX = 16;

const turnsSlowly = (rope: RopeScaling): RopeScaling => ({ ...rope, freqScale: rope.freqScale / 2 });

export const MUTATIONS = [
  {
    name: "rotation by half the angle",
    apply: (program) => changed(program, (step) => ropeOf(step) && { ...step, rope: turnsSlowly(ropeOf(step)!) }),
  },
  {
    name: "windows lost",
    apply: (program) => changed(program, (step) => (isNarrow(step) ? { ...step, window: 0 } : undefined)),
  },
  {
    name: "windows one position wider",
    apply: (program) => changed(program, (step) => (isNarrow(step) ? { ...step, window: step.window + 1 } : undefined)),
  },
  { name: "queries and keys normed on the other side of the rotation", apply: normedElsewhere },
  {
    name: "attention scaled by a fifth more",
    apply: (program) =>
      changed(program, (step) =>
        /attention/i.test(step.op) && "scale" in step && typeof step.scale === "number"
          ? ({ ...step, scale: step.scale * 1.2 } as Step) // the same kind
          : undefined,
      ),
  },
  {
    name: "one expert fewer",
    apply: (program) =>
      changed(program, (step) =>
        step.op === "moe" && step.nUsed > 1 ? { ...step, nUsed: step.nUsed - 1 } : undefined,
      ),
  },
] as const satisfies readonly Mutation[];

function isNarrow(step: Step): step is Step & { readonly window: number } {
  return "window" in step && step.window !== undefined && step.window > 0 && step.window <= WINDOW_MAX;
}

function ropeOf(step: Step): RopeScaling | undefined {
  return "rope" in step ? step.rope : undefined;
}

function changed(program: Program, change: (step: Step) => Step | undefined): Program | undefined {
  const steps = program.steps.map((step) => change(step) ?? step);
  return steps.some((step, i) => step !== program.steps[i]) ? { ...program, steps } : undefined;
}

/** Swaps each norm of a query or key with the rotation of the same buffer. */
function normedElsewhere({ steps, ...program }: Program): Program | undefined {
  const places = steps.flatMap((step, at) => {
    if (step.op !== "rope") return [];
    const norm = steps.findIndex((each, i) => Math.abs(i - at) <= 3 && isNormOf(each, step.x.name));
    return norm < 0 ? [] : [[at, norm] as const];
  });
  const swapped = [...steps];
  for (const [rope, norm] of places) [swapped[rope], swapped[norm]] = [steps[norm]!, steps[rope]!];
  return places.length > 0 ? { ...program, steps: swapped } : undefined;
}

const isNormOf = (step: Step, name: string): boolean =>
  (step.op === "rmsNorm" || step.op === "layerNorm") && step.x.name === name && step.out.name === name;

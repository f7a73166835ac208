/**
 * The commands of the next decode step, encoded while the device runs the last one. They depend on the numbers of rows
 * and splits only: tokens and positions are in the batch, which is written before they are submitted.
 */
import { encodeDispatches, type Counts, type Pass } from "./record.ts";

/** A long step begins with commands for this many dispatches: the device runs them while the others are submitted. */
const HEAD = { dispatches: 16, of: 64 };

/** Identifies commands: the dispatches of a pass before `end`. */
export interface StepCommands {
  readonly pass: Pass;
  readonly counts: Counts;
  readonly end: number;
}

export interface NextStep {
  /** Encodes a step that is likely to follow. */
  prepare(step: StepCommands): void;
  /** The commands of a step, prepared or encoded now, in order of submission. They can be submitted once. */
  take(step: StepCommands): readonly GPUCommandBuffer[];
  /** Drops prepared commands. */
  drop(): void;
}

export function makeNextStep(gpu: Pick<GPUDevice, "createCommandEncoder">): NextStep {
  let ready: (StepCommands & { readonly version: number; readonly commands: GPUCommandBuffer[] }) | undefined;
  const encode = ({ pass, counts, end }: StepCommands): GPUCommandBuffer[] => {
    const cuts = end < HEAD.of ? [0, end] : [0, HEAD.dispatches, end];
    return cuts.slice(1).map((to, i) => {
      const encoder = gpu.createCommandEncoder();
      encodeDispatches(encoder, pass, counts, { first: cuts[i]!, end: to }); // one cut more than parts
      return encoder.finish();
    });
  };
  return {
    prepare: (step) => void (ready = { ...step, version: step.pass.version, commands: encode(step) }),
    take(step) {
      const found = ready && isSame(ready, step) && ready.version === step.pass.version ? ready.commands : undefined;
      ready = undefined;
      return found ?? encode(step);
    },
    drop: () => void (ready = undefined),
  };
}

function isSame(a: StepCommands, b: StepCommands): boolean {
  if (a.pass !== b.pass || a.end !== b.end) return false;
  const { all, wanted, given, sequences, splits, memorySplits, forgotten } = a.counts;
  const other = b.counts;
  const sameRows = all === other.all && wanted === other.wanted && given === other.given;
  const sameMemories = memorySplits === other.memorySplits && forgotten === other.forgotten;
  return sameRows && sameMemories && sequences === other.sequences && splits === other.splits;
}

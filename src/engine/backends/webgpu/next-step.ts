/**
 * The commands of the next decode step, encoded while the device runs the last one. They depend on the numbers of rows
 * and splits only: tokens and positions are in the batch, which is written before they are submitted.
 */
import type { Counts, Pass } from "./record.ts";

/** Identifies the commands: they have the dispatches of a pass before `end`. */
export interface StepCommands {
  readonly pass: Pass;
  readonly counts: Counts;
  readonly end: number;
}

export interface NextStep {
  /** Encodes a step that is likely to follow. */
  prepare(step: StepCommands): void;
  /** The commands of a step, prepared or encoded now. They can be submitted once. */
  take(step: StepCommands): GPUCommandBuffer;
  /** Drops what is prepared. */
  drop(): void;
}

export function makeNextStep(encode: (step: StepCommands) => GPUCommandBuffer): NextStep {
  let ready: (StepCommands & { readonly version: number; readonly commands: GPUCommandBuffer }) | undefined;
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
  const { all, wanted, given, sequences, splits } = a.counts;
  const other = b.counts;
  const sameRows = all === other.all && wanted === other.wanted && given === other.given;
  return sameRows && sequences === other.sequences && splits === other.splits;
}

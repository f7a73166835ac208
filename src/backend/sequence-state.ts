/**
 * What a program keeps of each sequence between runs, derived from its steps. Keys and values are kept by position: a
 * sequence goes on from any shorter length by overwriting them. Convolutions and recurrences keep only what the last
 * row left, and go on from there or from a checkpoint.
 */
import { stateOf } from "./describe.ts";
import type { KvState, RunningState, SequenceState, Step } from "./step.ts";

/** A step that keeps something, and what. */
export interface KeepingStep<T extends SequenceState = SequenceState> {
  readonly step: Step;
  readonly state: T;
}

/** The steps that keep something, in order. */
export function keepingSteps(steps: readonly Step[]): KeepingStep[] {
  return steps.flatMap((step) => {
    const state = stateOf(step);
    return state ? [{ step, state }] : [];
  });
}

/** The KV caches of a program, one for each layer that fills one, in order. */
export const kvStates = (steps: readonly Step[]): KvState[] =>
  keepingSteps(steps).flatMap(({ state }) => (state.kind === "kv" ? [state] : []));

/** Values of a state that a sequence has once, not for each position. */
export const valuesOf = (state: RunningState): number =>
  state.kind === "conv" ? state.rows * state.dim : state.shape.reduce((product, dim) => product * dim, 1);

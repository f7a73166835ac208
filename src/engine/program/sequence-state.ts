/**
 * What a program keeps of each sequence between runs, derived from its steps. Keys and values are kept by position: a
 * sequence goes on from any shorter length by overwriting them. Convolutions and recurrences keep only what the last
 * row left, and go on from there or from a checkpoint.
 */
import type { SlotBytes } from "./backend.ts";
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

/** What a sequence takes where all is kept as float32. */
export function floatBytes(steps: readonly Step[]): SlotBytes {
  const states = keepingSteps(steps).map(({ state }) => state);
  const sum = (values: readonly number[]): number => 4 * values.reduce((total, each) => total + each, 0);
  return {
    perToken: sum(states.map((state) => (state.kind === "kv" ? state.nKvHeads * (state.keyDim + state.valueDim) : 0))),
    once: sum(states.map((state) => (state.kind === "kv" ? 0 : valuesOf(state)))),
  };
}

/** Values of a state that a sequence has once, not for each position. */
export const valuesOf = (state: RunningState): number =>
  state.kind === "conv" ? state.rows * state.dim : state.shape.reduce((product, dim) => product * dim, 1);

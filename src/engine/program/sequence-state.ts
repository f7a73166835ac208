/**
 * The state that a program keeps of each sequence between runs, derived from its steps. Keys and values are kept by
 * position: a sequence continues from any shorter length by overwriting them. Convolutions and recurrences keep only
 * the state after the last row, and continue from it or from a checkpoint.
 */
import type { SlotBytes } from "./backend.ts";
import { stateOf } from "./describe.ts";
import { memoryLayers } from "./memory.ts";
import type { KvState, RunningState, SequenceState } from "./kept-state.ts";
import type { Step } from "./step.ts";

/** A step with a state, and the state's description. */
export interface KeepingStep<T extends SequenceState = SequenceState> {
  readonly step: Step;
  readonly state: T;
}

/** The steps with a state, in order. */
export function keepingSteps(steps: readonly Step[]): KeepingStep[] {
  return steps.flatMap((step) => {
    const state = stateOf(step);
    return state ? [{ step, state }] : [];
  });
}

/** The KV caches of a program, one per layer that fills one, in order. */
export const kvStates = (steps: readonly Step[]): KvState[] =>
  keepingSteps(steps).flatMap(({ state }) => (state.kind === "kv" ? [state] : []));

/**
 * Returns whether tokens can be removed from the middle of sequences: not if they have compressed blocks, which begin
 * at fixed positions.
 */
export const canShift = (steps: readonly Step[]): boolean => !steps.some(({ op }) => op === "compress");

/** Bytes of a sequence if everything is float32. */
export function floatBytes(steps: readonly Step[]): SlotBytes {
  const states = keepingSteps(steps).map(({ state }) => state);
  const sum = (values: readonly number[]): number => 4 * values.reduce((total, each) => total + each, 0);
  return {
    perToken: sum(states.map((state) => (state.kind === "kv" ? state.nKvHeads * (state.keyDim + state.valueDim) : 0))),
    once: sum([
      ...states.map((state) => (state.kind === "kv" ? 0 : valuesOf(state))),
      ...memoryLayers(steps).map(({ rows, nKvHeads, headDim }) => 2 * rows * nKvHeads * headDim),
    ]),
  };
}

/** Number of values of a state that does not grow with positions. */
export const valuesOf = (state: RunningState): number =>
  state.kind === "conv" ? state.rows * state.dim : state.shape.reduce((product, dim) => product * dim, 1);

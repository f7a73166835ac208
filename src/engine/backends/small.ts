/**
 * Models so small that 8-bit activations are a loss: their rows are short, so rounding is a large part of each sum, and
 * float32 costs them little. Which of two nearly tied tokens is chosen is then the same on every backend.
 */
import type { LoadOptions, Program } from "../program/backend.ts";
import { weightsOf } from "../program/describe.ts";
import type { Weight } from "../program/step.ts";

/** Of matrices as float32: what a processor's caches hold, and what a load unpacks in a few hundredths of a second. */
const SMALL_BYTES = 32 * 2 ** 20;

/** The options to load this program with, whichever backend does. */
export const loadOptionsFor = <T extends object>(program: Program, options: T): T & Pick<LoadOptions, "small"> => ({
  ...options,
  small: isSmall(program),
});

function isSmall({ steps }: Program): boolean {
  const matrices = new Map(steps.flatMap((step) => weightsOf(step).map((w) => [keyOf(w), w])));
  const count = [...matrices.values()].reduce((sum, { experts, inDim, outDim }) => sum + experts * inDim * outDim, 0);
  return 4 * count <= SMALL_BYTES;
}

/** Steps that share a tensor's rows count them once. */
const keyOf = ({ name, rowStart }: Weight): string => `${name} ${rowStart}`;

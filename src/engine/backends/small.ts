/**
 * Small models, for which 8-bit activations are a loss: their rows are short, so rounding is a large part of each sum,
 * and float32 costs little. With float32, every backend makes the same choice between nearly tied tokens.
 */
import type { LoadOptions, Program } from "../program/backend.ts";
import { weightsOf } from "../program/describe.ts";
import type { Weight } from "../program/step.ts";

/** Bytes of float32 matrices: they fit into a processor's caches, and are unpacked in some hundredths of a second. */
const SMALL_BYTES = 32 * 2 ** 20;

/** Options with which this program is loaded on any backend. */
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

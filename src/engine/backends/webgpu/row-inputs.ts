/** The rows of a run that are vectors in place of ids: the input of a program, or vectors among ids. */
import { assert } from "../../../base/index.ts";
import type { StateRows } from "../../program/backend.ts";
import type { Chunk } from "./chunks.ts";
import type { Device } from "./device.ts";
import type { Plan } from "./plan.ts";

export interface RowInputs {
  /** Values per input row; 0 if the program begins with tokens. */
  readonly dim: number;
  /** Concatenates the input rows of a batch. */
  gather(batch: readonly StateRows[]): void;
  /** Uploads `count` input rows from `first` on. */
  give(first: number, count: number): void;
  /** Uploads the vectors of a chunk. */
  giveVectors(chunk: Chunk): void;
}

export function makeRowInputs(
  { gpu }: Pick<Device, "gpu">,
  plan: Pick<Plan, "input" | "given">,
  dim: number,
): RowInputs {
  let inputs = new Float32Array(0);
  return {
    dim,
    gather(batch) {
      if (dim === 0) return;
      const size = batch.reduce((sum, { tokens }) => sum + tokens.length * dim, 0);
      if (inputs.length < size) inputs = new Float32Array(size);
      let at = 0;
      for (const { slot, tokens, input } of batch) {
        const expected = tokens.length * dim;
        assert(input?.length === expected, `slot ${slot}: input of ${input?.length} values, expected ${expected}`);
        inputs.set(input, at);
        at += expected;
      }
    },
    give(first, count) {
      if (plan.input) gpu.queue.writeBuffer(plan.input, 0, inputs, first * dim, count * dim);
    },
    giveVectors({ vectors }) {
      let at = 0;
      for (const each of vectors) {
        gpu.queue.writeBuffer(plan.given!, at, each as Float32Array<ArrayBuffer>); // the batch was checked
        at += each.byteLength;
      }
    },
  };
}

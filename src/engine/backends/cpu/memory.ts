/** Cross attention of the reference, and the memories of slots that it reads. */
import { assert } from "../../../base/index.ts";
import type { LoadOptions } from "../../program/backend.ts";
import { memoryLayers } from "../../program/memory.ts";
import type { Ops, Step } from "../../program/step.ts";
import { dot } from "./math.ts";
import type { KvLayer, Pass } from "./pass.ts";

type MemoryOp = "crossAttention" | "remember" | "keepRemembering";

export const memoryOps: Pick<Ops<void, Pass>, MemoryOp> = {
  crossAttention(step, pass) {
    const { nHeads, nKvHeads, headDim, scale, rows: rowsMax } = step;
    const { k, v } = layerOf(step.layer, pass);
    const q = pass.get(step.q);
    const y = pass.make(step.out, q.rows);
    for (let r = 0; r < q.rows; r++) {
      const count = pass.memoryRows[r]!;
      for (let head = 0; head < nHeads; head++) {
        const own = Math.floor((head * nKvHeads) / nHeads);
        const at = (t: number): number => ((pass.slots[r]! * rowsMax + t) * nKvHeads + own) * headDim;
        const first = r * q.dim + head * headDim;
        const scores = Array.from({ length: count }, (_, t) => scale * dot(k, at(t), q.data, first, headDim));
        const max = scores.reduce((a, b) => Math.max(a, b), -Infinity);
        const sums = new Float64Array(headDim);
        let total = 0;
        for (const [t, score] of scores.entries()) {
          const share = Math.exp(score - max);
          total += share;
          for (let i = 0; i < headDim; i++) sums[i]! += share * v[at(t) + i]!;
        }
        for (let i = 0; i < headDim; i++) y.data[first + i] = count === 0 ? 0 : sums[i]! / total;
      }
    }
  },

  remember({ k, v, layer }, pass) {
    const kept = layerOf(layer, pass);
    for (const [from, to] of [
      [pass.get(k), kept.k],
      [pass.get(v), kept.v],
    ] as const) {
      const slotLen = to.length / pass.slotCount;
      to.set(from.data.subarray(0, from.rows * from.dim), pass.slots[0]! * slotLen);
    }
  },

  keepRemembering({ x }, pass) {
    const { data, rows, dim } = pass.get(x);
    for (let r = 0; r < rows; r++) if (pass.memoryRows[r] === 0) data.fill(0, r * dim, (r + 1) * dim);
  },
};

function layerOf(layer: number, { memories }: Pass): KvLayer {
  const kept = memories.get(layer);
  assert(kept, `no memory for layer ${layer}`);
  return kept;
}

export const allocateMemories = (steps: readonly Step[], { slots }: Pick<LoadOptions, "slots">): Map<number, KvLayer> =>
  new Map(
    memoryLayers(steps).map(({ layer, rows, nKvHeads, headDim }) => {
      const length = slots * rows * nKvHeads * headDim;
      return [layer, { k: new Float32Array(length), v: new Float32Array(length) }];
    }),
  );

/** One step of the reference on chosen rows, and its comparison. */
import { expect } from "bun:test";
import type { Program } from "../../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import type { Buf, Step, Weight } from "../../../../src/engine/program/step.ts";
import { makeRng } from "../../../../src/engine/text/rng.ts";
import { makeWeightBox, type WeightBox } from "../../../conformance/weights.ts";

/** Runs one step on an embedding of chosen rows. */
export async function run(rows: number[][], build: (box: WeightBox, x: Buf) => { steps: Step[]; out: Buf }) {
  const box = makeWeightBox("step", makeRng(3));
  const dim = rows[0]!.length;
  const table = box.matrix({ inDim: dim, outDim: rows.length });
  new Float32Array(box.source.read(table.name).buffer).set(rows.flat());
  const x = { name: "x", dim };
  const { steps, out } = build(box, x);
  const logits = { name: "logits", dim: out.dim };
  const program: Program = {
    shape: { arch: "step", dim, nLayers: 0, vocabSize: out.dim },
    steps: [{ op: "embed", out: x, table, scale: 1 }, ...steps, { op: "takeRows", out: logits, x: out }],
    logits,
    states: logits,
    weights: box.source,
  };
  const session = await cpuBackend.load(program, {
    ctxLen: 8,
    slots: 1,
    precise: true,
    threads: 1,
    cacheDir: undefined,
  });
  const tokens = Int32Array.from(rows.keys());
  const got = await session.run([{ slot: 0, start: 0, tokens, logits: "all" }]);
  const valuesOf = (w: Weight): number[] => [...new Float32Array(box.source.read(w.name).buffer)];
  return { got: [...got], valuesOf };
}
export const expectAll = (got: number[], expected: number[]): void => {
  expect(got.length).toBe(expected.length);
  got.forEach((value, i) => expect(value).toBeCloseTo(expected[i]!, 5));
};

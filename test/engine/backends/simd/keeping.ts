/** Programs that keep some state of each row, so that a single row is decode. */
import type { Program } from "../../../../src/engine/program/backend.ts";

/** The program after an attention of one layer, over its embedding. */
export function withAttention(program: Program): Program {
  const [embed, ...rest] = program.steps;
  if (embed?.op !== "embed") throw new Error("invariant: a case begins with an embedding");
  const { out: x } = embed;
  const out = { name: "attended", dim: x.dim };
  const heads = { nHeads: 1, nKvHeads: 1, headDim: x.dim, scale: 1, window: 0, softCap: 0, rope: undefined };
  const attention = { op: "attention", out, q: x, k: x, v: x, layer: 0, ...heads } as const;
  return { ...program, steps: [embed, attention, { op: "add", out: x, a: x, b: out, scale: 0 }, ...rest] };
}

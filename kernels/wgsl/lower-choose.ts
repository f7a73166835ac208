/** The choice of positions → dispatches: keys into their cache, scores of blocks of positions, the best blocks. */
import { isRotated } from "./cache.ts";
import type { Step } from "../../src/engine/program/step.ts";
import { batch, grid, NONE, read, valueOf, write, type Context, type StepDispatch } from "./lowering.ts";
import { rotate, store } from "./lower-attention.ts";

/** Keys in a tile of `score_positions`. */
const TILE = 64;

export type ChoosePositions = Extract<Step, { op: "choosePositions" }>;

/** Blocks of a context, and all of their scores for a row. */
export function scoresOf({ heads, weights, block }: ChoosePositions, ctxLen: number) {
  const [groups, blocks] = [weights ? 1 : heads, Math.ceil(ctxLen / block)];
  return { groups, blocks, count: groups * blocks };
}

export function lowerChoosePositions(step: ChoosePositions, context: Context): StepDispatch[] {
  const { q, k, weights, heads, headDim, count, block, local, cache: layer, closed = false } = step;
  const { ctxLen, cacheType = "f32" } = context;
  const { groups, blocks, count: all } = scoresOf(step, ctxLen);
  const stored = store({ k, v: undefined }, { layer, heads: 1, skip: 0 }, context);
  const turned = { name: `${q.name}, rotated`, dim: q.dim };
  const turns = isRotated(cacheType) ? [rotate({ x: q, out: turned }, { heads, dim: headDim, skip: 0 }, context)] : [];
  const query = valueOf(turns.length > 0 ? turned : q, context);
  const scores = write({ name: "scores of positions", dim: all }, query, context);
  const [scored, stride] = closed ? [1, block] : [block, 1];
  const span = Math.max(1, Math.floor(TILE / scored));
  const score: StepDispatch = {
    kernel: "score_positions",
    quants: [cacheType],
    operands: [
      read(query),
      weights ? read(valueOf(weights, context)) : NONE,
      { kind: "cache", layer, part: "keys", of: "tokens" },
      batch,
      scores,
    ],
    params: { heads, headDim, ctxLen, block: scored, blocks, span, hasWeights: weights ? 1 : 0, stride },
    grid: { ...grid(query), x: Math.ceil(blocks / span) },
  };
  const choose: StepDispatch = {
    kernel: "choose_positions",
    operands: [read(scores.value), batch, write(step.out, query, context)],
    params: { groups, count, block, blocks, local, closed: closed ? 1 : 0 },
    grid: { ...grid(query), x: groups },
  };
  return [stored, ...turns, score, choose];
}

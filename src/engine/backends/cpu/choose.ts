/** The choice of positions in the reference: scores of every earlier position, and the blocks with the largest. */
import type { Ops, Step } from "../../program/step.ts";
import { cacheOf, store } from "./attention.ts";
import { dot } from "./math.ts";
import type { Matrix, Pass } from "./pass.ts";

type ChoosePositions = Extract<Step, { op: "choosePositions" }>;

export const chooseOps: Pick<Ops<void, Pass>, "choosePositions"> = {
  choosePositions(step, pass) {
    const { k: keys } = cacheOf(step.cache, pass);
    store(keys, pass.get(step.k), pass);
    const q = pass.get(step.q);
    const y = pass.make(step.out, q.rows);
    y.data.fill(-1, 0, y.rows * y.dim);
    const groups = step.weights ? 1 : step.heads;
    for (let r = 0; r < q.rows; r++) {
      for (let group = 0; group < groups; group++) {
        const scores = blockScores(step, { keys, q, r, group }, pass);
        y.data.set(largest(scores, step), r * y.dim + group * step.count);
      }
    }
  },
};

/** The score of each block up to the row's own. */
function blockScores(
  { block, heads, headDim, weights, closed }: ChoosePositions,
  { keys, q, r, group }: { keys: Float32Array; q: Matrix; r: number; group: number },
  pass: Pass,
): number[] {
  const cell = pass.cells[r]!;
  const base = pass.slots[r]! * pass.ctxLen;
  const factors = weights && pass.get(weights);
  const product = (t: number, head: number): number =>
    dot(keys, (base + t) * headDim, q.data, r * q.dim + head * headDim, headDim);
  const blocks = closed ? Math.floor((cell + 1) / block) : Math.floor(cell / block) + 1;
  const scores = Array<number>(blocks).fill(-Infinity);
  for (let t = closed ? block - 1 : 0; t <= cell; t += closed ? block : 1) {
    let score = factors ? 0 : product(t, group);
    for (let head = 0; factors && head < heads; head++)
      score += factors.data[r * heads + head]! * Math.max(0, product(t, head));
    const at = Math.floor(t / block);
    scores[at] = Math.max(scores[at]!, score);
  }
  return scores;
}

/** The numbers of the chosen blocks, ascending. */
function largest(scores: readonly number[], { count, local }: ChoosePositions): number[] {
  const ranked = scores.map((score, at) => ({ at, score: at >= scores.length - local ? Infinity : score }));
  ranked.sort((a, b) => (a.score === b.score ? a.at - b.at : b.score - a.score));
  return ranked
    .slice(0, count)
    .map(({ at }) => at)
    .toSorted((a, b) => a - b);
}

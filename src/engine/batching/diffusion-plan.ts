/**
 * The passes that fill in an answer of masks. Published models do it in two ways: block by block, with equally many
 * tokens in each pass of a block (LLaDA), or over the whole answer, with a number of tokens per pass that follows from
 * noise levels (Dream). The passes of a block fill all of its masks, so all numbers are known before the first pass.
 */

export interface DiffusionPass {
  /** The first position that may become a token, relative to the answer, and the one after the last. */
  readonly from: number;
  readonly end: number;
  /** Number of positions that do. */
  readonly count: number;
}

/** The noise of the last step. */
const LEAST_NOISE = 0.001;

/**
 * @param length tokens of the answer
 * @param steps passes of all blocks together, at least one for each; 0: one for each token
 * @param block tokens of a block; 0: the whole answer, by noise levels
 */
export function planPasses({
  length,
  steps,
  block,
}: {
  length: number;
  steps: number;
  block: number;
}): DiffusionPass[] {
  const total = steps > 0 ? Math.min(steps, length) : length;
  const span = block > 0 ? Math.min(block, length) : length;
  const passes: DiffusionPass[] = [];
  for (let from = 0; from < length; from += span) {
    const end = Math.min(from + span, length);
    const own = Math.max(1, Math.round((total * (end - from)) / length));
    const counts = block > 0 ? evenCounts(end - from, own) : noiseCounts(length, own);
    for (const count of counts) if (count > 0) passes.push({ from, end, count });
  }
  return passes;
}

/** If the division leaves a remainder, the first passes fill one more. */
const evenCounts = (masks: number, steps: number): number[] =>
  Array.from({ length: steps }, (_, step) => Math.floor(masks / steps) + (step < masks % steps ? 1 : 0));

/** In float32, as published programs compute them. The last pass fills all remaining masks. */
function noiseCounts(masks: number, steps: number): number[] {
  const { fround } = Math;
  const noiseAt = (step: number): number => fround(1 - fround(fround(step / steps) * fround(1 - LEAST_NOISE)));
  let left = masks;
  return Array.from({ length: steps }, (_, step) => {
    const share = step < steps - 1 ? fround(1 - fround(noiseAt(step + 1) / noiseAt(step))) : 1;
    const count = Math.floor(fround(left * share));
    left -= count;
    return count;
  });
}

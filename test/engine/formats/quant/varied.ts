/**
 * Weights of many kinds, the same everywhere: only sums and products of a linear congruential generator's numbers.
 * `quantize.test.ts` records ggml's results for them.
 */

const SEED = 20_261_121;
const BLOCKS = 640;

/** (640 · 256) Each block is of one of ten kinds. */
export function varied(): Float32Array {
  let state = SEED;
  const uniform = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 31 - 1;
  };
  const bell = (): number => uniform() + uniform() + uniform() + uniform();
  const cube = (value: number): number => value * value * value;
  const kinds: readonly ((i: number) => number)[] = [
    () => bell() / 64,
    () => bell() / 64,
    () => cube(bell()),
    () => Math.abs(bell()),
    () => -Math.abs(bell()),
    () => (uniform() > 0.95 ? bell() : 0),
    () => Math.round(bell() * 4) / 8,
    (i) => bell() * (i % 64 < 16 ? 2 ** -52 : 1), // some groups are negligible
    (i) => bell() * 2 ** -((i % 256) >> 3), // each group has another magnitude
    (i) => (i % 256 < 128 ? 0.25 : bell() * 2 ** -20),
  ];
  return Float32Array.from({ length: BLOCKS * 256 }, (_, i) => kinds[(i >> 8) % kinds.length]!(i));
}

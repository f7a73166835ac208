/** ALiBi (arXiv:2108.12409): the bias of scores by distance. */

/** Slope of each head: its score decreases by this per position of distance. (`ggml_compute_forward_soft_max_f32`) */
export function alibiSlopes(nHeads: number, maxBias: number): Float64Array {
  const whole = 2 ** Math.floor(Math.log2(nHeads));
  const [base, between] = [2 ** (-maxBias / whole), 2 ** (-maxBias / 2 / whole)];
  return Float64Array.from({ length: nHeads }, (_, head) =>
    head < whole ? base ** (head + 1) : between ** (2 * (head - whole) + 1),
  );
}

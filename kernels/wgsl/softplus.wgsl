// softplus: ln(1 + exp(x)) with a small relative error, spliced into the recurrent kernels. The logarithm of a GPU is
// inexact near 1, so that a series replaces it.

fn softplus(x: f32) -> f32 {
  let e = exp(-abs(x));
  let s = e / (2.0 + e); // ln(1 + e) = 2 artanh(s), s ≤ 1/3
  let t = s * s;
  let series = 1.0 + t * (1.0 / 3.0 + t * (1.0 / 5.0 + t * (1.0 / 7.0 + t * (1.0 / 9.0 + t / 11.0))));
  return max(x, 0.0) + 2.0 * s * series;
}

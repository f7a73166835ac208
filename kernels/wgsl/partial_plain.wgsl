// partial_plain: a thread's part of a product in float32. Threads take turns at groups of eight weights, which are
// unpacked once for all rows of x. The sums of a row are added in an order that does not depend on other rows.

/// Σ x · w of eight weights. If a row ends inside them, values after its end must not count, not even as NaN · 0.
fn dot8(a: Eight, b: Eight, i: u32) -> f32 {
  if (i + 8u <= p.in_dim) { return dot(a.lo, b.lo) + dot(a.hi, b.hi); }
  var sum = 0.0;
  for (var j = 0u; j < 4u; j++) {
    if (i + j < p.in_dim) { sum += a.lo[j] * b.lo[j]; }
    if (i + 4u + j < p.in_dim) { sum += a.hi[j] * b.hi[j]; }
  }
  return sum;
}

/// A thread's part of the product of each row of x with each row of w.
/// @param x_row the first of `rows` rows of x; @param w_row the first of `count` ≥ 1 rows of w, of `row_bytes` each
fn partial(x_row: u32, rows: u32, w_row: u32, row_bytes: u32, count: u32, thread: Thread) -> Sums {
  var sums = Sums();
  var weights: array<Eight, COLUMNS>;
  for (var i = thread.t * 8u; i < p.in_dim; i += WG * 8u) {
    let at = (i / BLOCK_LEN) * BLOCK_BYTES;
    for (var c = 0u; c < COLUMNS; c++) {
      // Beyond the matrix its last row is read again: the result is not stored.
      weights[c] = dequant8((w_row + min(c, count - 1u)) * row_bytes + at, i % BLOCK_LEN);
    }
    for (var r = 0u; r < ROWS; r++) {
      if (r >= rows) { break; }
      let values = x_normed(&sums, r, (x_row + r) * p.in_dim, i);
      for (var c = 0u; c < COLUMNS; c++) { sums[r * TERMS + c] += dot8(values, weights[c], i); }
    }
  }
  return sums;
}

// partial_16: a thread's part of a product for block types whose weights are read 16 bytes at a time (loads16/), after
// `runs_float` or `runs_packed`. A unit has UNIT weights in RUNS runs of 16: the first run
// begins at `unit_start`, and each RUN_STEP after the one before. The order of a row's sums does not depend on other
// rows.

/// A unit's weights: scale · q − least, with four q in each word and a scale for each run.
struct Unit { q: array<vec4<u32>, RUNS>, scale: vec4<f32>, least: vec4<f32> }

/// Sixteen values of the r-th multiplied row from `i`; the row begins at `row`.
fn x_run(sums: ptr<function, Sums>, r: u32, row: u32, i: u32) -> mat4x4<f32> {
  let at = (row + i) / 4u;
  return mat4x4<f32>(
    normed(sums, r, i, x[at]),
    normed(sums, r, i + 4u, x[at + 1u]),
    normed(sums, r, i + 8u, x[at + 2u]),
    normed(sums, r, i + 12u, x[at + 3u]),
  );
}

/// A thread's part of the product of each row of x with each row of w.
/// @param x_row the first of `rows` rows of x; @param w_row the first of `count` ≥ 1 rows of w, of `row_bytes` each
fn partial(x_row: u32, rows: u32, w_row: u32, row_bytes: u32, count: u32, thread: Thread) -> Sums {
  var sums = Sums();
  let blocks = row_bytes / BLOCK_BYTES;
  var units: array<Unit, COLUMNS>;
  for (var unit = thread.t; unit < p.in_dim / UNIT; unit += WG) {
    for (var c = 0u; c < COLUMNS; c++) {
      // Beyond the matrix its last row is read again: the result is not stored.
      units[c] = unit_at((w_row + min(c, count - 1u)) * blocks, unit);
    }
    for (var r = 0u; r < ROWS; r++) {
      if (r >= rows) { break; }
      for (var run = 0u; run < RUNS; run++) {
        let a = values_at(&sums, r, (x_row + r) * p.in_dim, unit_start(unit) + run * RUN_STEP);
        for (var c = 0u; c < COLUMNS; c++) {
          sums[r * TERMS + c] += dot_run(a, units[c].q[run], units[c].scale[run], units[c].least[run]);
        }
      }
    }
  }
  return sums;
}

// product: products of up to ROWS rows of x with up to COLUMNS neighbouring rows of w, spliced into the matrix-vector
// kernels, on top of a thread's part: `partial_plain` or `partial_16`.

/// Eight values of x from `i`, zeros beyond the row, which begins at `row`.
fn x_eight(row: u32, i: u32) -> Eight {
  var eight = Eight(vec4<f32>(), vec4<f32>());
  let at = row + i;
  if (p.in_dim % 4u == 0u) {
    eight.lo = x[at / 4u];
    if (i + 8u <= p.in_dim) { eight.hi = x[at / 4u + 1u]; }
    return eight;
  }
  for (var j = 0u; j < 8u && i + j < p.in_dim; j++) {
    let value = x[(at + j) / 4u][(at + j) % 4u];
    if (j < 4u) { eight.lo[j] = value; } else { eight.hi[j - 4u] = value; }
  }
  return eight;
}

/// The same for row r, after `norm` or `unnormed`.
fn x_normed(sums: ptr<function, Sums>, r: u32, row: u32, i: u32) -> Eight {
  let eight = x_eight(row, i);
  return Eight(normed(sums, r, i, eight.lo), normed(sums, r, i + 4u, eight.hi));
}

/// Thread r · COLUMNS + c gets the product of row r of x and row c of w. A barrier must be between two calls.
fn product(x_row: u32, rows: u32, w_row: u32, row_bytes: u32, count: u32, thread: Thread) -> f32 {
  var sums = partial(x_row, rows, w_row, row_bytes, count, thread);
  return sum_all(&sums, rows, thread);
}

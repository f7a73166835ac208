// product: sums of up to four rows of x with up to four neighbouring rows of w, spliced into the matrix-vector kernels.
// Threads take turns at groups of eight weights, which are unpacked once for all rows of x. The sums of a row are added
// in an order that does not depend on other rows.

/// Eight values of x from `i`, zeros beyond the row, which begins at `row`.
fn x_eight(row: u32, i: u32) -> Eight {
  var eight = Eight(vec4<f32>(), vec4<f32>());
  let at = row + i;
  if (p.in_dim % 4u == 0u) {
    eight.lo = x[at / 4u];
    if (i + 8u <= p.in_dim) { eight.hi = x[at / 4u + 1u]; }
    return eight;
  }
  for (var j = 0u; j < 4u; j++) {
    if (i + j < p.in_dim) { eight.lo[j] = x[(at + j) / 4u][(at + j) % 4u]; }
    if (i + 4u + j < p.in_dim) { eight.hi[j] = x[(at + 4u + j) / 4u][(at + 4u + j) % 4u]; }
  }
  return eight;
}

/// Σ x · w of eight weights. Where a row ends inside them, what lies behind it must not count, not even as NaN · 0.
fn dot8(a: Eight, b: Eight, i: u32) -> f32 {
  if (i + 8u <= p.in_dim) { return dot(a.lo, b.lo) + dot(a.hi, b.hi); }
  var sum = 0.0;
  for (var j = 0u; j < 4u; j++) {
    if (i + j < p.in_dim) { sum += a.lo[j] * b.lo[j]; }
    if (i + 4u + j < p.in_dim) { sum += a.hi[j] * b.hi[j]; }
  }
  return sum;
}

/// What one thread has of the sums: a column of the result for each row of x.
/// @param x_row the first of `rows` rows of x; @param w_row the first of `count` ≥ 1 rows of w, of `row_bytes` each
fn partial4(x_row: u32, rows: u32, w_row: u32, row_bytes: u32, count: u32, thread: Thread) -> mat4x4<f32> {
  var a = vec4<f32>();
  var b = vec4<f32>();
  var c = vec4<f32>();
  var d = vec4<f32>();
  let x_at = x_row * p.in_dim;
  for (var i = thread.t * 8u; i < p.in_dim; i += WG * 8u) {
    let x_a = x_eight(x_at, i);
    var x_b = x_a;
    var x_c = x_a;
    var x_d = x_a;
    if (rows > 1u) { x_b = x_eight(x_at + p.in_dim, i); }
    if (rows > 2u) { x_c = x_eight(x_at + 2u * p.in_dim, i); }
    if (rows > 3u) { x_d = x_eight(x_at + 3u * p.in_dim, i); }
    let at = (i / BLOCK_LEN) * BLOCK_BYTES;
    for (var j = 0u; j < COLUMNS; j++) {
      // Beyond the matrix its last row is read again: what is made of it is not stored.
      let eight = dequant8((w_row + min(j, count - 1u)) * row_bytes + at, i % BLOCK_LEN);
      a[j] += dot8(x_a, eight, i);
      if (rows > 1u) { b[j] += dot8(x_b, eight, i); }
      if (rows > 2u) { c[j] += dot8(x_c, eight, i); }
      if (rows > 3u) { d[j] += dot8(x_d, eight, i); }
    }
  }
  return mat4x4<f32>(a, b, c, d);
}

/// The sums over all threads. A barrier must stand between two calls.
fn product4(x_row: u32, rows: u32, w_row: u32, row_bytes: u32, count: u32, thread: Thread) -> mat4x4<f32> {
  return sum_all(partial4(x_row, rows, w_row, row_bytes, count, thread), rows, thread);
}

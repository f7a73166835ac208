// product: sums of one row of x with up to four neighbouring rows of w, spliced into the matrix-vector kernels. Threads
// take turns at groups of eight weights; then eight threads add eight sums each, and everyone adds those eight.

/// Eight values of x from `i`, zeros beyond the row.
fn x_eight(row: u32, i: u32) -> Eight {
  var eight = Eight(vec4<f32>(), vec4<f32>());
  let at = row + i;
  if (i + 8u <= p.in_dim) {
    eight.lo = vec4<f32>(x[at], x[at + 1u], x[at + 2u], x[at + 3u]);
    eight.hi = vec4<f32>(x[at + 4u], x[at + 5u], x[at + 6u], x[at + 7u]);
    return eight;
  }
  for (var j = 0u; j < 4u; j++) {
    if (i + j < p.in_dim) { eight.lo[j] = x[at + j]; }
    if (i + 4u + j < p.in_dim) { eight.hi[j] = x[at + 4u + j]; }
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

/// @param x_row where the row of x begins; @param w_row the first of `count` rows of w, of `row_bytes` each
fn product4(x_row: u32, w_row: u32, row_bytes: u32, count: u32, t: u32) -> vec4<f32> {
  var sum = vec4<f32>();
  for (var i = t * 8u; i < p.in_dim; i += WG * 8u) {
    let values = x_eight(x_row, i);
    var block = w_row * row_bytes + (i / BLOCK_LEN) * BLOCK_BYTES;
    for (var c = 0u; c < count; c++) {
      sum[c] += dot8(values, dequant8(block, i % BLOCK_LEN), i);
      block += row_bytes;
    }
  }
  sums[t] = sum;
  workgroupBarrier();
  if (t < 8u) {
    var part = vec4<f32>();
    for (var j = 0u; j < 8u; j++) { part += sums[t * 8u + j]; }
    sums[t * 8u] = part;
  }
  workgroupBarrier();
  var total = vec4<f32>();
  for (var j = 0u; j < 8u; j++) { total += sums[j * 8u]; }
  return total;
}

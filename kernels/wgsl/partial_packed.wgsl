// partial_packed: a thread's part of a byte product, for block types that have `unpack32` (packed/). Values of x are
// rounded to 8 bits with a scale per 32, and multiplied four at a time. Rounding happens here, in registers, once for
// COLUMNS columns; the producer of x is not involved. Tolerance: each value of x moves by at most 1/254 of the largest
// in its group. A row's sums do not depend on other rows.

/// Thirty-two values of x, four signed bytes to a word: scale · q. And the sum of q over each half.
struct Rounded { lo: vec4<u32>, hi: vec4<u32>, scale: f32, sums: vec2<f32> }
/// Thirty-two weights likewise: scale · q − least, of each half.
struct Run { lo: vec4<u32>, hi: vec4<u32>, scale: vec2<f32>, least: vec2<f32> }

fn round4(values: vec4<f32>, inverse: f32) -> u32 {
  return pack4xI8Clamp(vec4<i32>(round(values * inverse)));
}

fn rounded(eight: Eight, inverse: f32) -> vec2<u32> {
  return vec2<u32>(round4(eight.lo, inverse), round4(eight.hi, inverse));
}

/// The magnitude as a number in the same order as the value; NaN is the largest.
fn size_of(values: vec4<f32>) -> vec4<u32> {
  return bitcast<vec4<u32>>(values) & vec4<u32>(0x7fffffffu);
}

fn dot16(a: vec4<u32>, b: vec4<u32>) -> i32 {
  return (dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y)) + (dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w));
}

/// The values from `i` of row r of x, which begins at `row`. A NaN makes the scale, and so all sums, NaN.
fn round32(sums: ptr<function, Sums>, r: u32, row: u32, i: u32) -> Rounded {
  var eights: array<Eight, 4>;
  var sizes = vec4<u32>();
  for (var k = 0u; k < 4u; k++) { // a loop, for compilers that inline calls
    let eight = x_normed(sums, r, row, i + 8u * k);
    sizes = max(sizes, max(size_of(eight.lo), size_of(eight.hi)));
    eights[k] = eight;
  }
  let most = bitcast<f32>(max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)));
  let inverse = select(0.0, 127.0 / most, most > 1e-30);
  let lo = vec4<u32>(rounded(eights[0], inverse), rounded(eights[1], inverse));
  let hi = vec4<u32>(rounded(eights[2], inverse), rounded(eights[3], inverse));
  let ones = vec4<u32>(0x01010101u);
  return Rounded(lo, hi, most / 127.0, vec2<f32>(f32(dot16(lo, ones)), f32(dot16(hi, ones))));
}

fn dot32(a: Rounded, b: Run) -> f32 {
  let sums = vec2<f32>(f32(dot16(a.lo, b.lo)), f32(dot16(a.hi, b.hi)));
  return a.scale * (dot(b.scale, sums) - dot(b.least, a.sums));
}

/// A thread's part of the product of each row of x with each row of w.
/// @param x_row the first of `rows` rows of x; @param w_row the first of `count` ≥ 1 rows of w, of `row_bytes` each
fn partial(x_row: u32, rows: u32, w_row: u32, row_bytes: u32, count: u32, thread: Thread) -> Sums {
  var sums = Sums();
  var weights: array<Run, COLUMNS>;
  for (var i = thread.t * 32u; i < p.in_dim; i += WG * 32u) {
    let at = (i / BLOCK_LEN) * BLOCK_BYTES;
    for (var c = 0u; c < COLUMNS; c++) {
      // Beyond the matrix its last row is read again: the result is not stored.
      weights[c] = unpack32((w_row + min(c, count - 1u)) * row_bytes + at, i % BLOCK_LEN);
    }
    for (var r = 0u; r < ROWS; r++) {
      if (r >= rows) { break; }
      let values = round32(&sums, r, (x_row + r) * p.in_dim, i);
      for (var c = 0u; c < COLUMNS; c++) { sums[r * TERMS + c] += dot32(values, weights[c]); }
    }
  }
  return sums;
}

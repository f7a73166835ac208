// runs_packed: products of runs as bytes, spliced before `partial_16`: values of x are rounded to 8 bits with a scale
// per 16, and multiplied four at a time. Rounding happens here, in registers, once for COLUMNS columns; the producer of
// x is not involved. Tolerance: each value of x moves by at most 1/254 of the largest in its run.

/// Sixteen values of x, four signed bytes to a word: scale · q; and the sum of q.
struct Values { q: vec4<u32>, scale: f32, sum: f32 }

fn round4(values: vec4<f32>, inverse: f32) -> u32 {
  return pack4xI8Clamp(vec4<i32>(round(values * inverse)));
}

/// The magnitude as a number in the same order as the value; NaN is the largest.
fn size_of(values: vec4<f32>) -> vec4<u32> {
  return bitcast<vec4<u32>>(values) & vec4<u32>(0x7fffffffu);
}

fn dot16(a: vec4<u32>, b: vec4<u32>) -> f32 {
  return f32((dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y)) + (dot4I8Packed(a.z, b.z) + dot4I8Packed(a.w, b.w)));
}

/// A NaN makes the scale, and so all sums, NaN.
fn values_at(sums: ptr<function, Sums>, r: u32, row: u32, i: u32) -> Values {
  let four = x_run(sums, r, row, i);
  let sizes = max(max(size_of(four[0]), size_of(four[1])), max(size_of(four[2]), size_of(four[3])));
  let most = bitcast<f32>(max(max(sizes.x, sizes.y), max(sizes.z, sizes.w)));
  let inverse = select(0.0, 127.0 / most, most > 1e-30);
  let low = vec2<u32>(round4(four[0], inverse), round4(four[1], inverse));
  let q = vec4<u32>(low, round4(four[2], inverse), round4(four[3], inverse));
  return Values(q, most / 127.0, dot16(q, vec4<u32>(0x01010101u)));
}

/// Σ x · (scale · q − least) of a run.
fn dot_run(a: Values, q: vec4<u32>, scale: f32, least: f32) -> f32 {
  return a.scale * (scale * dot16(a.q, q) - least * a.sum);
}

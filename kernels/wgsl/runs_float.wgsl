// runs_float: products of runs in float32, spliced before `partial_16`.

/// Sixteen values of x and their sum.
struct Values { four: mat4x4<f32>, sum: f32 }

fn values_at(sums: ptr<function, Sums>, r: u32, row: u32, i: u32) -> Values {
  let four = x_run(sums, r, row, i);
  return Values(four, dot((four[0] + four[1]) + (four[2] + four[3]), vec4<f32>(1.0)));
}

/// Σ x · (scale · q − least) of a run.
fn dot_run(a: Values, q: vec4<u32>, scale: f32, least: f32) -> f32 {
  let low = dot(a.four[0], values_of(q.x)) + dot(a.four[1], values_of(q.y));
  let high = dot(a.four[2], values_of(q.z)) + dot(a.four[3], values_of(q.w));
  return scale * (low + high) - least * a.sum;
}

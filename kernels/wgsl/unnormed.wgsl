// unnormed: replaces `norm` in kernels whose rows of x have no norm.

/// Sums per row of x: one per column.
const TERMS: u32 = COLUMNS;

fn is_summed(term: u32) -> bool {
  return true;
}

fn normed(sums: ptr<function, Sums>, r: u32, i: u32, values: vec4<f32>) -> vec4<f32> {
  return values;
}

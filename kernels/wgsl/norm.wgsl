// norm: the norm of the rows of x that a product multiplies, spliced before it into kernels with parameters `has_norm`
// and `eps`. Values are multiplied by the norm's weights as they are read, and their squares are summed together with
// the products; at the end the sums are multiplied by 1 / rms. So a norm costs no dispatch and no other read of x.

/// Sums per row of x: one per column, plus the sum of squares.
const TERMS: u32 = COLUMNS + 1u;

/// Returns whether a sum is used at all.
fn is_summed(term: u32) -> bool {
  return p.has_norm == 1u || term % TERMS < COLUMNS;
}

/// Four values of row r from `i`, normed for the product.
fn normed(sums: ptr<function, Sums>, r: u32, i: u32, values: vec4<f32>) -> vec4<f32> {
  if (p.has_norm == 0u) { return values; }
  (*sums)[r * TERMS + COLUMNS] += dot(values, values);
  return values * norm[i / 4u]; // values beyond the row are zeros
}

fn norm_at(i: u32) -> f32 {
  return norm[i / 4u][i % 4u];
}

/// The final factor of row r's sums, 1 / sqrt(mean(x²) + eps).
fn inverse_of(r: u32, thread: Thread) -> f32 {
  if (p.has_norm == 0u) { return 1.0; }
  return 1.0 / sqrt(sum_of(r * TERMS + COLUMNS, thread) / f32(p.in_dim) + p.eps);
}

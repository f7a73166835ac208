// norm: the norm of the rows of x that a product multiplies, spliced before it into kernels with parameters `has_norm`
// and `eps`. Values are multiplied by the norm's weights as they are read, and their squares are summed beside the
// products; the sums are divided by the row's length when they are done. So a norm costs no dispatch and no other look
// at x.

/// Sums of a row of x: of each column, and of its squares.
const TERMS: u32 = COLUMNS + 1u;

/// Whether a sum is made at all.
fn is_summed(term: u32) -> bool {
  return p.has_norm == 1u || term % TERMS < COLUMNS;
}

/// Four values of row r from `i`, as the product takes them.
fn normed(sums: ptr<function, Sums>, r: u32, i: u32, values: vec4<f32>) -> vec4<f32> {
  if (p.has_norm == 0u) { return values; }
  (*sums)[r * TERMS + COLUMNS] += dot(values, values);
  return values * norm[i / 4u]; // values beyond the row are zeros
}

fn norm_at(i: u32) -> f32 {
  return norm[i / 4u][i % 4u];
}

/// What the sums of row r are multiplied with, 1 / sqrt(mean(x²) + eps), once they are made.
fn inverse_of(r: u32, thread: Thread) -> f32 {
  if (p.has_norm == 0u) { return 1.0; }
  return 1.0 / sqrt(sum_of(r * TERMS + COLUMNS, thread) / f32(p.in_dim) + p.eps);
}

// norm: the norm of the rows of x that a product multiplies, spliced before it into kernels with parameters `has_norm`
// and `eps`. Every workgroup reads whole rows anyway, so that it knows their lengths, and their values are multiplied
// by the weights of the norm as they are read; the sums are divided by the length when they are done.
var<workgroup> inverses: array<f32, ROWS>;

/// Four weights of the norm.
fn norm4(i: u32) -> vec4<f32> {
  if (p.has_norm == 0u) { return vec4<f32>(1.0); }
  if (p.in_dim % 4u == 0u) { return norm[i / 4u]; }
  return vec4<f32>(norm_at(i), norm_at(i + 1u), norm_at(i + 2u), norm_at(i + 3u));
}

fn norm_at(i: u32) -> f32 {
  return norm[i / 4u][i % 4u];
}

/// Makes `inverses` of the rows: 1 / sqrt(mean(x²) + eps).
fn measure(x_row: u32, rows: u32, thread: Thread) {
  if (p.has_norm == 0u) { return; }
  var squares = Sums();
  for (var i = thread.t * 4u; i < p.in_dim; i += WG * 4u) {
    for (var r = 0u; r < ROWS; r++) {
      if (r < rows) { squares[r * COLUMNS] += square((x_row + r) * p.in_dim, i); }
    }
  }
  let total = sum_all(&squares, rows, thread);
  if (thread.t % COLUMNS == 0u && thread.t / COLUMNS < rows) {
    inverses[thread.t / COLUMNS] = 1.0 / sqrt(total / f32(p.in_dim) + p.eps);
  }
  workgroupBarrier();
}

/// Σ of four squares of a row that begins at `first`, less where it ends inside them.
fn square(first: u32, i: u32) -> f32 {
  let at = first + i;
  if (p.in_dim % 4u == 0u) { return dot(x[at / 4u], x[at / 4u]); }
  var sum = 0.0;
  for (var j = 0u; j < 4u; j++) {
    let value = x[(at + j) / 4u][(at + j) % 4u];
    if (i + j < p.in_dim) { sum += value * value; }
  }
  return sum;
}

/// What the sums of a row are multiplied with.
fn inverse_of(r: u32) -> f32 {
  if (p.has_norm == 0u) { return 1.0; }
  return inverses[r];
}

// turned: one head of raw queries or keys, normed and rotated by its position, spliced into kernels after `turn`.

var<workgroup> head: array<f32, 256>;
var<workgroup> squares: array<f32, 64>;

fn raw_at(is_query: bool, at: u32) -> f32 {
  if (is_query) { return q[at]; }
  return k[at];
}

/// Loads head `h` of a row into `head`, normed, by all 64 threads.
fn load_head(is_query: bool, row: u32, h: u32, t: u32) {
  let dim = select(p.kv_heads, p.heads, is_query) * p.head_dim;
  let base = row * dim;
  let first = h * p.head_dim;
  for (var i = t; i < p.head_dim; i += 64u) { head[i] = raw_at(is_query, base + first + i); }
  if (p.norm > 0u) {
    let whole = p.norm == 2u;
    let len = select(p.head_dim, dim, whole);
    let from_first = base + select(first, 0u, whole);
    var sum = 0.0;
    for (var i = t; i < len; i += 64u) {
      let value = raw_at(is_query, from_first + i);
      sum += value * value;
    }
    squares[t] = sum;
    workgroupBarrier();
    var total = 0.0;
    for (var i = 0u; i < 64u; i++) { total += squares[i]; }
    let inverse = 1.0 / sqrt(total / f32(len) + p.eps);
    let weights = select(select(p.head_dim, p.heads * p.head_dim, whole), 0u, is_query) + select(0u, first, whole);
    for (var i = t; i < p.head_dim; i += 64u) { head[i] *= inverse * norms[weights + i]; }
  }
  workgroupBarrier();
}

/// Value i of the head in `head`, rotated by its position.
fn turned(i: u32, position: vec3<u32>) -> f32 {
  if (i >= 2u * p.pairs) { return head[i]; }
  let upper = (i / p.apart) % 2u == 1u;
  let turn = turn_of(select(i / 2u, i % p.pairs, p.step == 1u), position);
  let other = head[select(i + p.apart, i - p.apart, upper)];
  return head[i] * turn.x + select(-other, other, upper) * turn.y;
}

/// The factor on queries by their position.
fn scale_at(position: u32) -> f32 {
  return 1.0 + p.coef * log(floor((f32(position) + p.offset) / p.floor_scale) + 1.0);
}

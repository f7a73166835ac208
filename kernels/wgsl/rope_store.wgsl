// rope_store: y = the queries, normed, rotated and scaled by their position; puts the normed and rotated keys and the
// values into the cache. One head of queries, keys or values per workgroup.
//
//   binding 0  q      storage, read        f32 (rows, heads · head_dim)
//   binding 1  k      storage, read        f32 (rows, kv_heads · head_dim)
//   binding 2  v      storage, read        f32 (rows, kv_heads · head_dim)
//   binding 3  cosine storage, read        f32 (positions, pairs), magnitude included
//   binding 4  sine   storage, read        f32 (positions, pairs), magnitude included
//   binding 5  norms  storage, read        f32, of queries, then of keys: (head_dim) each where norm is 1, (heads ·
//              head_dim) and (kv_heads · head_dim) where it is 2
//   binding 6  y      storage, read_write  f32 (rows, heads · head_dim)
//   binding 7  keys   storage, read_write  f32 or f16 (slots, ctx_len, kv_heads · head_dim)
//   binding 8  values storage, read_write  as keys
//   binding 9  batch  storage, read        see batch.ts
//   binding 10  p     uniform              Params
//   dispatch   (heads + 2 · kv_heads, rows, 1), 64 threads each; head_dim at most 256
//   oracle     src/backend/cpu/ops.ts rmsNorm, rope, positionScale and attention; tolerance 1e-6 abs + 3e-6 rel,
//              of keys and values 5e-4 rel as f16
struct Params {
  heads: u32,
  kv_heads: u32,
  head_dim: u32,
  pairs: u32,
  step: u32,
  apart: u32,
  ctx_len: u32,
  norm: u32, // 0 none, 1 over each head, 2 over whole rows
  eps: f32,
  coef: f32, // of the scale by position: see position_scale
  floor_scale: f32,
  offset: f32,
}
@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> k: array<f32>;
@group(0) @binding(2) var<storage, read> v: array<f32>;
@group(0) @binding(3) var<storage, read> cosine: array<f32>;
@group(0) @binding(4) var<storage, read> sine: array<f32>;
@group(0) @binding(5) var<storage, read> norms: array<f32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
@group(0) @binding(7) var<storage, read_write> keys: array<Unit>;
@group(0) @binding(8) var<storage, read_write> values: array<Unit>;
@group(0) @binding(9) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(10) var<uniform> p: Params;
const WG: u32 = 64u;
var<workgroup> head: array<f32, 256>;
var<workgroup> sums: array<f32, 64>;
//#splice cache

fn value_at(is_query: bool, at: u32) -> f32 {
  if (is_query) { return q[at]; }
  return k[at];
}

/// Σ of squares of `len` values, by thread.
fn sum_squares(is_query: bool, first: u32, len: u32, t: u32) {
  var squares = 0.0;
  for (var i = t; i < len; i += WG) {
    let value = value_at(is_query, first + i);
    squares += value * value;
  }
  sums[t] = squares;
}

/// Value i of the head, turned by the row's position.
fn turned(i: u32, turns: u32) -> f32 {
  if (i >= 2u * p.pairs) { return head[i]; }
  let upper = (i / p.apart) % 2u == 1u;
  let turn = turns + select(i / 2u, i % p.pairs, p.step == 1u);
  let other = head[select(i + p.apart, i - p.apart, upper)];
  return head[i] * cosine[turn] + select(-other, other, upper) * sine[turn];
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = batch[1u + 2u * group.y];
  let kv_dim = p.kv_heads * p.head_dim;
  let cache_at = (row.y * p.ctx_len + row.z) * kv_dim;
  if (group.x >= p.heads + p.kv_heads) {
    let first = (group.x - p.heads - p.kv_heads) * p.head_dim;
    for (var i = t * UNIT; i < p.head_dim; i += WG * UNIT) {
      let at = group.y * kv_dim + first + i;
      values[(cache_at + first + i) / UNIT] = pack(v[at], v[at + 1u]);
    }
    return;
  }
  let is_query = group.x < p.heads;
  let dim = select(kv_dim, p.heads * p.head_dim, is_query);
  let first = select(group.x - p.heads, group.x, is_query) * p.head_dim;
  let base = group.y * dim;
  for (var i = t; i < p.head_dim; i += WG) { head[i] = value_at(is_query, base + first + i); }
  if (p.norm > 0u) {
    let whole = p.norm == 2u;
    let len = select(p.head_dim, dim, whole);
    sum_squares(is_query, base + select(first, 0u, whole), len, t);
    workgroupBarrier();
    var total = 0.0;
    for (var i = 0u; i < WG; i++) { total += sums[i]; }
    let inverse = 1.0 / sqrt(total / f32(len) + p.eps);
    let weights = select(select(p.head_dim, p.heads * p.head_dim, whole), 0u, is_query) + select(0u, first, whole);
    for (var i = t; i < p.head_dim; i += WG) { head[i] *= inverse * norms[weights + i]; }
  }
  workgroupBarrier();
  let scale = 1.0 + p.coef * log(floor((f32(row.z) + p.offset) / p.floor_scale) + 1.0);
  let turns = row.z * p.pairs;
  if (is_query) {
    for (var i = t; i < p.head_dim; i += WG) { y[base + first + i] = turned(i, turns) * scale; }
    return;
  }
  for (var i = t * UNIT; i < p.head_dim; i += WG * UNIT) {
    keys[(cache_at + first + i) / UNIT] = pack(turned(i, turns), turned(i + 1u, turns));
  }
}

// rope_store: y = the queries, normed, rotated and scaled by their position; puts the normed and rotated keys and the
// values into the cache. One head of queries, keys or values per workgroup.
//
//   binding 0  q      storage, read        f32 (rows, heads · head_dim)
//   binding 1  k      storage, read        f32 (rows, kv_heads · head_dim)
//   binding 2  v      storage, read        f32 (rows, kv_heads · head_dim)
//   binding 3  turns  storage, read        f32 (positions, pairs, 2): cosines and sines, magnitude included
//   binding 4  norms  storage, read        f32, of queries, then of keys: (head_dim) each where norm is 1, (heads ·
//              head_dim) and (kv_heads · head_dim) where it is 2
//   binding 5  y      storage, read_write  f32 (rows, heads · head_dim)
//   binding 6  keys   storage, read_write  cached (slots, ctx_len, kv_heads · head_dim)
//   binding 7  values storage, read_write  as keys
//   binding 8  batch  storage, read        see batch.ts
//   binding 9  p      uniform              Params
//   dispatch   (heads + 2 · kv_heads, rows, 1), 64 threads each; head_dim at most 256
//   oracle     engine/backends/cpu/ops.ts rmsNorm, rope, positionScale and attention; tolerance 1e-6 abs + 3e-6 rel,
//              of keys and values 5e-4 rel as f16
struct Params {
  heads: u32,
  kv_heads: u32,
  head_dim: u32,
  pairs: u32,
  step: u32,
  apart: u32,
  time: u32, // pairs by the part of a position that rotates them
  height: u32,
  width: u32,
  interleaved: u32,
  ctx_len: u32,
  norm: u32, // 0 none, 1 over each head, 2 over whole rows
  eps: f32,
  coef: f32, // coefficient of the scale by position: see position_scale
  floor_scale: f32,
  offset: f32,
}
@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> k: array<f32>;
@group(0) @binding(2) var<storage, read> v: array<f32>;
@group(0) @binding(3) var<storage, read> turns: array<vec2<f32>>;
@group(0) @binding(4) var<storage, read> norms: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read_write> keys: array<Unit>;
@group(0) @binding(7) var<storage, read_write> values: array<Unit>;
@group(0) @binding(8) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(9) var<uniform> p: Params;
const WG: u32 = 64u;
//#splice cache
//#splice turn
//#splice turned
//#splice rotate

/// Packs the unit from `i` on of values that lie in `rotating`.
fn packed(i: u32) -> array<Unit, WORDS> {
  let factor = rotation_factor(rotated_block(p.head_dim, 0u));
  var unit: array<f32, UNIT>;
  for (var j = 0u; j < UNIT; j++) { unit[j] = rotating[i + j] * factor; }
  return pack(unit);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = batch[1u + 3u * group.y]; // token, slot, cell
  let position = batch[3u + 3u * group.y].xyz;
  let kv_dim = p.kv_heads * p.head_dim;
  let cache_at = (row.y * p.ctx_len + row.z) * kv_dim;
  if (group.x >= p.heads + p.kv_heads) {
    let first = (group.x - p.heads - p.kv_heads) * p.head_dim;
    for (var i = t; i < p.head_dim; i += WG) { rotating[i] = v[group.y * kv_dim + first + i]; }
    rotate(p.head_dim, rotated_block(p.head_dim, 0u), t);
    for (var i = t * UNIT; i < p.head_dim; i += WG * UNIT) {
      var words = packed(i);
      let to = (cache_at + first + i) / UNIT * WORDS;
      for (var j = 0u; j < WORDS; j++) { values[to + j] = words[j]; }
    }
    return;
  }
  let is_query = group.x < p.heads;
  let h = select(group.x - p.heads, group.x, is_query);
  load_head(is_query, group.y, h, t);
  let first = h * p.head_dim;
  if (is_query) {
    let at = group.y * p.heads * p.head_dim + first;
    for (var i = t; i < p.head_dim; i += WG) { y[at + i] = turned(i, position) * scale_at(position.x); }
    return;
  }
  for (var i = t; i < p.head_dim; i += WG) { rotating[i] = turned(i, position); }
  rotate(p.head_dim, rotated_block(p.head_dim, 0u), t);
  for (var i = t * UNIT; i < p.head_dim; i += WG * UNIT) {
    var words = packed(i);
    let to = (cache_at + first + i) / UNIT * WORDS;
    for (var j = 0u; j < WORDS; j++) { keys[to + j] = words[j]; }
  }
}

// rope_attention: rope_store and attention in one, for few rows: each workgroup norms and rotates the queries and its
// own key, which also goes into the cache with its value, for later runs. Keys and values of earlier rows of its
// sequence are there already: `rope_store` stores them first if a sequence has several rows in a run.
//
//   binding 0  q      storage, read        f32 (rows, heads · head_dim)
//   binding 1  k      storage, read        f32 (rows, kv_heads · head_dim)
//   binding 2  v      storage, read        f32 (rows, kv_heads · head_dim)
//   binding 3  turns  storage, read        f32 (positions, pairs, 2): cosines and sines, magnitude included
//   binding 4  norms  storage, read        f32, as in rope_store, then sinks (heads) from has_sinks − 1 on
//   binding 5  keys   storage, read_write  cached (slots, ctx_len, kv_heads · head_dim)
//   binding 6  values storage, read_write  as keys
//   binding 7  batch  storage, read        see batch.ts
//   binding 8  y      storage, read_write  f32 (rows, heads · head_dim)
//   binding 9  parts  storage, read_write  f32 (rows, heads, splits, value_dim + 2): sums, peak, total
//   binding 10  p     uniform              Params
//   dispatch   (kv_heads · quads, rows, splits), 64 threads each; head_dim at most 256, a multiple of 4
//   oracle     engine/backends/cpu/ops.ts rmsNorm, rope, positionScale and attention; tolerance 2e-5 abs + 2e-4 rel, of
//              keys and values as rope_store
struct Params {
  heads: u32,
  kv_heads: u32,
  head_dim: u32,
  value_dim: u32, // equals head_dim
  value_row: u32, // values of a position
  value_skip: u32, // values of a head before the first
  ctx_len: u32,
  window: u32,
  chunked: u32, // 1: the window cuts positions into chunks
  scale: f32,
  soft_cap: f32,
  has_sinks: u32, // 0, or their offset in `norms` plus one
  has_slopes: u32, // the same
  whole_len: u32,
  least_len: u32,
  splits: u32, // maximum number of splits, for which `parts` has room
  pairs: u32,
  step: u32,
  apart: u32,
  time: u32, // pairs by the part of a position that rotates them
  height: u32,
  width: u32,
  interleaved: u32,
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
@group(0) @binding(5) var<storage, read_write> keys: array<Four>;
@group(0) @binding(6) var<storage, read_write> values: array<Four>;
@group(0) @binding(7) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read_write> y: array<f32>;
@group(0) @binding(9) var<storage, read_write> parts: array<f32>;
@group(0) @binding(10) var<uniform> p: Params;
//#splice cache
//#splice heads
//#splice splits
//#splice narrow
//#splice attend
//#splice turn
//#splice turned

fn place_of(quad: Quad, i: u32) -> u32 { return i; }
fn is_own(quad: Quad, i: u32) -> bool { return true; }
fn biases_of(quad: Quad, place: u32) -> vec4<f32> { return vec4<f32>(); }
fn key_part(quad: Quad, i: u32, at: u32, d: u32) -> vec4<f32> { return key_four(at, d); }
fn value_part(quad: Quad, i: u32, at: u32, d: u32) -> vec4<f32> { return value_four(at, d); }

fn extra(i: u32) -> f32 {
  return norms[i];
}

fn load_queries(quad: Quad, position: vec3<u32>, t: u32) {
  var mine = array<vec4<f32>, 4>(); // values t, t + 64, …
  for (var h = 0u; h < quad.count; h++) {
    load_head(true, quad.row, quad.first + h, t);
    for (var j = 0u; j < 4u && t + j * WG < p.head_dim; j++) {
      mine[j][h] = turned(t + j * WG, position) * scale_at(position.x) * p.scale;
    }
    workgroupBarrier();
  }
  for (var j = 0u; j < 4u; j++) {
    let i = t + j * WG;
    query[(i % 4u) * KEY_FOURS + i / 4u] = mine[j];
  }
}

/// Vec4 t of the key of a row of this run; zeros beyond its end.
fn key_of(row: u32, kv_head: u32, position: vec3<u32>, t: u32) -> vec4<f32> {
  load_head(false, row, kv_head, t);
  if (4u * t >= p.head_dim) { return vec4<f32>(); }
  let i = 4u * t;
  return vec4<f32>(turned(i, position), turned(i + 1u, position), turned(i + 2u, position), turned(i + 3u, position));
}

/// The same for the value.
fn value_of(row: u32, kv_head: u32, t: u32) -> vec4<f32> {
  if (4u * t >= p.head_dim) { return vec4<f32>(); }
  let at = (row * p.kv_heads + kv_head) * p.head_dim + 4u * t;
  return vec4<f32>(v[at], v[at + 1u], v[at + 2u], v[at + 3u]);
}

/// A vec4 in the cache's format, the one that may share its word, and the scale of their group.
struct Kept { four: Four, next: Four, scale: f32 }

/// The kept vec4 of each thread.
fn kept_of(x: vec4<f32>, t: u32) -> Kept {
  var peak = 0u;
  var mine = x;
  var next = x;
  if (GROUP > 4u) {
    scratch[t] = x;
    workgroupBarrier();
    if (ROTATES) {
      mine = rotated_four(t);
      scratch[t] = mine;
      workgroupBarrier();
    }
    next = scratch[t ^ 1u];
    for (var i = 0u; i < GROUP / 4u; i++) { peak = max(peak, peak_bits(scratch[t - t % (GROUP / 4u) + i])); }
    workgroupBarrier();
  }
  let scale = scale_from(peak);
  return Kept(four_from(mine, scale), four_from(next, scale), scale);
}

/// The vec4 `t` of a head in `scratch`, rotated.
fn rotated_four(t: u32) -> vec4<f32> {
  let block = rotated_block(p.head_dim, 0u);
  var mine = rotate_lanes(scratch[t]);
  for (var half = 1u; half < block / 4u; half *= 2u) {
    workgroupBarrier();
    scratch[t] = mine;
    workgroupBarrier();
    let other = scratch[t ^ half];
    mine = select(mine + other, other - mine, (t & half) != 0u);
  }
  workgroupBarrier();
  return mine * rotation_factor(block);
}

/// The vec4 as later rows read it.
fn read_back(kept: Kept) -> vec4<f32> {
  return four_of(kept.four, scale_word(kept.scale), 0u);
}

/// The scores of one key, of which each thread has a vec4.
fn score_of(four: vec4<f32>, columns: u32, t: u32) -> vec4<f32> {
  scratch[t] = four.x * query[t] + four.y * query[64u + t] + four.z * query[128u + t] + four.w * query[192u + t];
  workgroupBarrier();
  var score = vec4<f32>();
  for (var i = 0u; i < columns; i++) { score += scratch[i]; }
  workgroupBarrier();
  return capped(score);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = batch[1u + 3u * group.y]; // token, slot, cell
  let position = batch[3u + 3u * group.y].xyz;
  let span = span_of(row.z, group.z);
  if (span.start >= span.end) { return; }
  let quad = quad_of(group, row.z);
  let kv_dim = p.kv_heads * p.head_dim;
  let base = (row.y * p.ctx_len * p.kv_heads + quad.kv_head) * p.head_dim;
  load_queries(quad, position, t);
  workgroupBarrier();
  rotate_query(quad, t);
  var found = found_none(quad, group.z, t);
  attend(&found, row.y, span.start, min(span.end, row.z), quad, t);
  if (span.end > row.z) {
    let key = kept_of(key_of(group.y, quad.kv_head, position, t), t);
    let value = kept_of(value_of(group.y, quad.kv_head, t), t);
    let score = score_of(read_back(key), quad.columns, t);
    raise(&found, max(found.most, score));
    if (t < quad.columns) {
      add_value(&found, exp(score - found.most), read_back(value));
      if (quad.first % (p.heads / p.kv_heads) == 0u) {
        let i = (base + row.z * kv_dim) / 4u + t;
        if (!JOINS || t % 2u == 0u) {
          keys[four_place(i)] = join_fours(key.four, key.next);
          values[four_place(i)] = join_fours(value.four, value.next);
        }
        if (GROUP > 4u && t % (GROUP / 4u) == 0u) {
          keys[scale_place(i)] = scale_word(key.scale);
          values[scale_place(i)] = scale_word(value.scale);
        }
      }
    }
  }
  gather(found, t);
  rotate_back(quad, t);
  store(quad, group.z, span.whole, found.most, t);
}

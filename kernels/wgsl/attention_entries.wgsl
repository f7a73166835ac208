// attention_entries: as attention, over the positions of the row's window and over one entry per block of `ratio`
// positions, whose place is the block's last position. Keys are values, too: vectors of positions lie in `keys`, and
// entries in `values`. A row has one split.
//
//   binding 0  q      storage, read        f32 (rows, heads · head_dim)
//   binding 1  keys   storage, read        cached (slots, ctx_len, head_dim)
//   binding 2  values storage, read        cached (slots, ctx_len, head_dim)
//   binding 3  batch  storage, read        see batch.ts
//   binding 4  extras storage, read        f32, as in attention
//   binding 5  chosen storage, read        u32 (rows, count): entries, rising; read if there are more of them
//   binding 6  y      storage, read_write  f32 (rows, heads · head_dim)
//   binding 7  parts  storage, read_write  never written
//   binding 8  p      uniform              Params
//   dispatch   (quads, rows, 1), WG threads each; head_dim at most 256, wide 512
//   oracle     src/engine/backends/cpu/compressed.ts compressedAttention; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  heads: u32,
  kv_heads: u32, // 1
  head_dim: u32,
  value_dim: u32,
  value_row: u32, // values of a position
  value_skip: u32, // 0
  ctx_len: u32,
  window: u32,
  chunked: u32, // 0
  scale: f32,
  soft_cap: f32,
  has_sinks: u32, // 0, or their offset in `extras` plus one
  has_slopes: u32, // 0
  whole_len: u32,
  least_len: u32,
  splits: u32, // 1
  ratio: u32,
  count: u32, // the most entries that a row attends to
}
@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> keys: array<Four>;
@group(0) @binding(2) var<storage, read> values: array<Four>;
@group(0) @binding(3) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> extras: array<f32>;
@group(0) @binding(5) var<storage, read> chosen: array<u32>;
@group(0) @binding(6) var<storage, read_write> y: array<f32>;
@group(0) @binding(7) var<storage, read_write> parts: array<f32>;
@group(0) @binding(8) var<uniform> p: Params;
//#splice cache
//#splice heads
//#splice splits
//#splice narrow
//#splice attend

//#splice row

/// Positions of the row's window.
fn window_of(quad: Quad) -> u32 { return min(quad.position + 1u, p.window); }

/// The window, then the entries.
fn place_of(quad: Quad, i: u32) -> u32 {
  let near = window_of(quad);
  if (i < near) { return quad.position + 1u - near + i; }
  var entry = i - near;
  if ((quad.position + 1u) / p.ratio > p.count) { entry = chosen[quad.row * p.count + entry]; }
  return (entry + 1u) * p.ratio - 1u;
}
fn is_own(quad: Quad, i: u32) -> bool { return true; }
fn biases_of(quad: Quad, place: u32) -> vec4<f32> { return vec4<f32>(); }
fn key_part(quad: Quad, i: u32, at: u32, d: u32) -> vec4<f32> {
  if (i < window_of(quad)) { return key_four(at, d); }
  return value_four(at, d);
}
fn value_part(quad: Quad, i: u32, at: u32, d: u32) -> vec4<f32> { return key_part(quad, i, at, d); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let end = batch[1u + 3u * group.y].z + 1u;
  attend_row(group, Span(0u, min(end, p.window) + min(end / p.ratio, p.count), true), t);
}

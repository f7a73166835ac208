// attention_chosen: as attention, over the positions that choose_positions chose for the row.
//
//   binding 0  q      storage, read        f32 (rows, heads · head_dim)
//   binding 1  keys   storage, read        cached (slots, ctx_len, kv_heads · head_dim)
//   binding 2  values storage, read        cached (slots, ctx_len, value_row)
//   binding 3  batch  storage, read        see batch.ts
//   binding 4  extras storage, read        f32, as in attention
//   binding 5  chosen storage, read        u32 (rows, kv_heads · count): blocks of positions, rising
//   binding 6  y      storage, read_write  f32 (rows, heads · value_dim)
//   binding 7  parts  storage, read_write  as in attention
//   binding 8  p      uniform              Params
//   dispatch   as attention
//   oracle     src/engine/backends/cpu/attention.ts; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  heads: u32,
  kv_heads: u32,
  head_dim: u32,
  value_dim: u32,
  value_row: u32, // values of a position
  value_skip: u32, // index of the first value that is read in a head
  ctx_len: u32,
  window: u32, // the most positions that are chosen
  chunked: u32, // 0
  scale: f32,
  soft_cap: f32,
  has_sinks: u32, // 0, or their offset in `extras` plus one
  has_slopes: u32, // the same
  whole_len: u32,
  least_len: u32,
  splits: u32, // capacity of parts
  count: u32, // blocks
  block: u32, // positions of each
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

/// The position that index `i` of the window stands for: the window counts the chosen positions.
fn chosen_place(quad: Quad, i: u32) -> u32 {
  let at = i + seen_from(quad.position) - (quad.position + 1u);
  return chosen[(quad.row * p.kv_heads + quad.kv_head) * p.count + at / p.block] * p.block + at % p.block;
}
fn place_of(quad: Quad, i: u32) -> u32 { return min(chosen_place(quad, i), quad.position); }
/// The row's own block may end after the row.
fn is_own(quad: Quad, i: u32) -> bool { return chosen_place(quad, i) <= quad.position; }
fn biases_of(quad: Quad, place: u32) -> vec4<f32> { return vec4<f32>(); }
fn key_part(quad: Quad, i: u32, at: u32, d: u32) -> vec4<f32> { return key_four(at, d); }
fn value_part(quad: Quad, i: u32, at: u32, d: u32) -> vec4<f32> { return value_four(at, d); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  attend_row(group, span_of(batch[1u + 3u * group.y].z, group.z), t);
}

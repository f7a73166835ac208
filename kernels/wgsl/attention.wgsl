// attention: up to four heads that share keys, of one row, over a split of the row's context. A row's only split writes
// the result, several leave parts for attention_reduce. attention_wide has larger heads: `wide` in place of `narrow`.
//
//   binding 0  q      storage, read        f32 (rows, heads · head_dim)
//   binding 1  keys   storage, read        cached (slots, ctx_len, kv_heads · head_dim)
//   binding 2  values storage, read        cached (slots, ctx_len, value_row)
//   binding 3  batch  storage, read        see batch.ts
//   binding 4  extras storage, read        f32: sinks (heads) from has_sinks − 1 on, slopes (heads) from
//              has_slopes − 1 on, biases (heads, 2 · far + 1) from has_biases − 1 on
//   binding 5  y      storage, read_write  f32 (rows, heads · value_dim)
//   binding 6  parts  storage, read_write  f32 (rows, heads, splits, value_dim + 2): sums, peak, total
//   binding 7  p      uniform              Params
//   dispatch   (kv_heads · quads, rows, splits), WG threads each; head_dim and value_dim at most 256, wide 640 and 512
//   oracle     src/engine/backends/cpu/attention.ts; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  heads: u32,
  kv_heads: u32,
  head_dim: u32,
  value_dim: u32,
  value_row: u32, // values of a position
  value_skip: u32, // index of the first value that is read in a head
  ctx_len: u32,
  window: u32,
  chunked: u32, // 1: the window cuts positions into chunks
  scale: f32,
  soft_cap: f32,
  has_sinks: u32, // 0, or their offset in `extras` plus one
  has_slopes: u32, // the same
  whole_len: u32,
  least_len: u32,
  splits: u32, // capacity of parts
  has_biases: u32, // as has_sinks: biases of scores by distance
  far: u32,
}
@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> keys: array<Four>;
@group(0) @binding(2) var<storage, read> values: array<Four>;
@group(0) @binding(3) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> extras: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read_write> parts: array<f32>;
@group(0) @binding(7) var<uniform> p: Params;
//#splice cache
//#splice heads
//#splice splits
//#splice narrow
//#splice attend

//#splice row

fn place_of(quad: Quad, i: u32) -> u32 { return i; }
fn is_own(quad: Quad, i: u32) -> bool { return true; }
fn biases_of(quad: Quad, place: u32) -> vec4<f32> {
  var biases = vec4<f32>();
  if (p.has_biases == 0u) { return biases; }
  let at = p.has_biases - 1u + p.far - min(quad.position - place, p.far);
  for (var h = 0u; h < quad.count; h++) { biases[h] = extra(at + (quad.first + h) * (2u * p.far + 1u)); }
  return biases;
}
fn key_part(quad: Quad, i: u32, at: u32, d: u32) -> vec4<f32> { return key_four(at, d); }
fn value_part(quad: Quad, i: u32, at: u32, d: u32) -> vec4<f32> { return value_four(at, d); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  attend_row(group, span_of(batch[1u + 3u * group.y].z, group.z), t);
}

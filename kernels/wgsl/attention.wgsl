// attention: up to four heads that share keys, of one row, over a split of the row's context. A row's only split writes
// the result, several leave parts for attention_reduce.
//
//   binding 0  q      storage, read        f32 (rows, heads · head_dim)
//   binding 1  keys   storage, read        f32 or f16 (slots, ctx_len, kv_heads · head_dim)
//   binding 2  values storage, read        as keys
//   binding 3  batch  storage, read        see batch.ts
//   binding 4  y      storage, read_write  f32 (rows, heads · head_dim)
//   binding 5  parts  storage, read_write  f32 (rows, heads, splits, head_dim + 2): sums, peak, total
//   binding 6  p      uniform              Params
//   dispatch   (kv_heads · quads, rows, splits), 64 threads each; head_dim at most 256
//   oracle     src/engine/backends/cpu/ops.ts attention; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  heads: u32,
  kv_heads: u32,
  head_dim: u32,
  ctx_len: u32,
  window: u32,
  scale: f32,
  soft_cap: f32,
  whole_len: u32,
  least_len: u32,
  splits: u32, // capacity of parts
}
@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> keys: array<Four>;
@group(0) @binding(2) var<storage, read> values: array<Four>;
@group(0) @binding(3) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read_write> parts: array<f32>;
@group(0) @binding(6) var<uniform> p: Params;
//#splice cache
//#splice heads
//#splice splits
//#splice attend

fn load_query(quad: Quad, t: u32) {
  for (var i = t; i < quad.columns * 4u; i += WG) {
    var four = vec4<f32>();
    for (var h = 0u; h < quad.count && i < p.head_dim; h++) {
      four[h] = q[(quad.row * p.heads + quad.first + h) * p.head_dim + i] * p.scale;
    }
    query[(i % 4u) * 64u + i / 4u] = four;
  }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = batch[1u + 2u * group.y];
  let span = span_of(row.z, group.z);
  if (span.start >= span.end) { return; }
  let quad = quad_of(group);
  let base = (row.y * p.ctx_len * p.kv_heads + quad.kv_head) * p.head_dim;
  load_query(quad, t);
  workgroupBarrier();
  var found = Found(vec4<f32>(FLOOR), vec4<f32>(), mat4x4<f32>());
  attend(&found, base, span.start, span.end, quad.columns, t);
  gather(found, t);
  store(quad, group.z, span.whole, found.most, t);
}

// attention_reduce: joins the splits of a row that attention left in parts. A row with one split has its result
// already.
//
//   binding 0  parts storage, read        f32 (rows, heads, splits, value_dim + 2): sums, peak, total
//   binding 1  batch storage, read        see batch.ts
//   binding 2  y     storage, read_write  f32 (rows, heads · value_dim)
//   binding 3  p     uniform              Params
//   dispatch   (heads, rows, 1), 64 threads each; at most 64 splits
//   oracle     src/engine/backends/cpu/ops.ts attention; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  heads: u32,
  value_dim: u32,
  window: u32,
  chunked: u32,
  whole_len: u32,
  least_len: u32,
  splits: u32,
}
@group(0) @binding(0) var<storage, read> parts: array<f32>;
@group(0) @binding(1) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;
const WG: u32 = 64u;
var<workgroup> shares: array<f32, 64>; // per split
var<workgroup> totals: array<f32, 64>;
//#splice splits

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let seen = seen_from(batch[1u + 3u * group.y].z);
  let len = split_len(seen);
  if (seen <= len) { return; }
  let splits = (seen + len - 1u) / len;
  let head = group.y * p.heads + group.x;
  let each = p.value_dim + 2u;
  let first = head * p.splits * each;
  var peak = parts[first + p.value_dim];
  for (var i = 1u; i < splits; i++) { peak = max(peak, parts[first + i * each + p.value_dim]); }
  if (t < splits) {
    let at = first + t * each + p.value_dim;
    shares[t] = exp(parts[at] - peak);
    totals[t] = shares[t] * parts[at + 1u];
  }
  workgroupBarrier();
  var total = 0.0;
  for (var i = 0u; i < splits; i++) { total += totals[i]; }
  for (var at = t; at < p.value_dim; at += WG) {
    var sum = 0.0;
    for (var i = 0u; i < splits; i++) { sum += shares[i] * parts[first + i * each + at]; }
    y[head * p.value_dim + at] = sum / total;
  }
}

// match_length: scales each row of x to the length of the other's row, one row per workgroup.
//
//   binding 0  x      storage, read_write  f32 (rows, dim)
//   binding 1  other  storage, read        f32 (rows, other_dim)
//   binding 2  p      uniform              Params
//   dispatch   (1, rows, 1), 64 threads each
//   oracle     src/engine/backends/cpu/ops.ts matchLength; tolerance 1e-5 rel
struct Params { dim: u32, other_dim: u32 }
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read> other: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;
const WG: u32 = 64u;
var<workgroup> sums: array<vec2<f32>, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let base = group.y * p.dim;
  var part = vec2<f32>();
  for (var i = t; i < p.dim; i += WG) { part.x += x[base + i] * x[base + i]; }
  for (var i = t; i < p.other_dim; i += WG) {
    let value = other[group.y * p.other_dim + i];
    part.y += value * value;
  }
  sums[t] = part;
  workgroupBarrier();
  var total = vec2<f32>();
  for (var i = 0u; i < WG; i++) { total += sums[i]; }
  let factor = sqrt(total.y / total.x);
  for (var i = t; i < p.dim; i += WG) { x[base + i] *= factor; }
}

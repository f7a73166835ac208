// rms_norm: y = x / sqrt(mean(x²) + eps) · w over each run of `len` values, one run per workgroup.
//
//   binding 0  x      storage, read        f32 (rows, dim)
//   binding 1  w      storage, read        f32 (len)
//   binding 2  y      storage, read_write  f32 (rows, dim)
//   binding 3  p      uniform              Params
//   dispatch   (dim / len, rows, 1), 64 threads each
//   oracle     src/backend/cpu/ops.ts rmsNorm; tolerance 2e-6 rel
struct Params { dim: u32, len: u32, eps: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;
const WG: u32 = 64u;
var<workgroup> sums: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let base = group.y * p.dim + group.x * p.len;
  var squares = 0.0;
  for (var i = t; i < p.len; i += WG) { squares += x[base + i] * x[base + i]; }
  sums[t] = squares;
  workgroupBarrier();
  var total = 0.0;
  for (var i = 0u; i < WG; i++) { total += sums[i]; }
  let inverse = 1.0 / sqrt(total / f32(p.len) + p.eps);
  for (var i = t; i < p.len; i += WG) { y[base + i] = x[base + i] * inverse * w[i]; }
}

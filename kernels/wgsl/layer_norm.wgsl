// layer_norm: y = (x − mean(x)) / sqrt(variance(x) + eps) · w + b over each row, one row per workgroup.
//
//   binding 0  x      storage, read        f32 (rows, dim)
//   binding 1  w      storage, read        f32 (dim)
//   binding 2  b      storage, read        f32 (dim), read if has_bias
//   binding 3  y      storage, read_write  f32 (rows, dim)
//   binding 4  p      uniform              Params
//   dispatch   (1, rows, 1), 64 threads each
//   oracle     src/engine/backends/cpu/ops.ts layerNorm; tolerance 1e-5 abs + 1e-5 rel
struct Params { dim: u32, has_bias: u32, eps: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> p: Params;
const WG: u32 = 64u;
var<workgroup> sums: array<f32, 64>;
var<workgroup> squares: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let base = group.y * p.dim;
  var sum = 0.0;
  for (var i = t; i < p.dim; i += WG) { sum += x[base + i]; }
  sums[t] = sum;
  workgroupBarrier();
  var total = 0.0;
  for (var i = 0u; i < WG; i++) { total += sums[i]; }
  let mean = total / f32(p.dim);
  var square = 0.0;
  for (var i = t; i < p.dim; i += WG) { square += (x[base + i] - mean) * (x[base + i] - mean); }
  squares[t] = square;
  workgroupBarrier();
  total = 0.0;
  for (var i = 0u; i < WG; i++) { total += squares[i]; }
  let inverse = 1.0 / sqrt(total / f32(p.dim) + p.eps);
  for (var i = t; i < p.dim; i += WG) {
    let bias = select(0.0, b[i * p.has_bias], p.has_bias == 1u);
    y[base + i] = (x[base + i] - mean) * inverse * w[i] + bias;
  }
}

// layer_norm: y = (x − mean(x)) / sqrt(variance(x) + eps) · w + b over each run of `len` values, one run per workgroup.
// Run i of a row has the weights and biases i modulo the number of weights.
//
//   binding 0  x      storage, read        f32 (rows, dim)
//   binding 1  w      storage, read        f32 (weights, len)
//   binding 2  b      storage, read        f32 (weights, len), read if has_bias
//   binding 3  y      storage, read_write  f32 (rows, dim)
//   binding 4  p      uniform              Params
//   dispatch   (dim / len, rows, 1), 64 threads each
//   oracle     src/engine/backends/cpu/ops.ts layerNorm and bareLayerNorm; tolerance 1e-5 abs + 1e-5 rel
struct Params {
  dim: u32,
  len: u32,
  weights: u32, // 0: none
  has_bias: u32,
  eps: f32,
}
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
  let base = group.y * p.dim + group.x * p.len;
  var sum = 0.0;
  for (var i = t; i < p.len; i += WG) { sum += x[base + i]; }
  sums[t] = sum;
  workgroupBarrier();
  var total = 0.0;
  for (var i = 0u; i < WG; i++) { total += sums[i]; }
  let mean = total / f32(p.len);
  var square = 0.0;
  for (var i = t; i < p.len; i += WG) { square += (x[base + i] - mean) * (x[base + i] - mean); }
  squares[t] = square;
  workgroupBarrier();
  total = 0.0;
  for (var i = 0u; i < WG; i++) { total += squares[i]; }
  let inverse = 1.0 / sqrt(total / f32(p.len) + p.eps);
  let weighted = p.weights > 0u;
  let first = (group.x % max(p.weights, 1u)) * p.len;
  for (var i = t; i < p.len; i += WG) {
    let weight = select(1.0, w[select(0u, first + i, weighted)], weighted);
    let bias = select(0.0, b[(first + i) * p.has_bias], p.has_bias == 1u);
    y[base + i] = (x[base + i] - mean) * inverse * weight + bias;
  }
}

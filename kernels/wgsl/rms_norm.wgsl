// rms_norm: y = residual + scale · x / sqrt(Σx² / divisor + eps) · w over each run of `len` values, one run per
// workgroup. Run i of a row has the weights i modulo their number.
//
//   binding 0  x      storage, read        f32 (rows, dim)
//   binding 1  w      storage, read        f32 (weights, len)
//   binding 2  residual storage, read      f32 (rows, dim), read if has_residual
//   binding 3  y      storage, read_write  f32 (rows, dim)
//   binding 4  p      uniform              Params
//   dispatch   (dim / len, rows, 1), 256 threads each: a row alone has no more than one workgroup
//   oracle     src/engine/backends/cpu/ops.ts rmsNorm, bareRmsNorm and l2Norm; tolerance 1e-6 abs + 2e-6 rel
struct Params {
  dim: u32,
  len: u32,
  weights: u32, // 0: none
  divisor: f32, // len for the mean of the squares, 1 for their sum
  eps: f32,
  has_residual: u32,
  scale: f32,
}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read> residual: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> p: Params;
const WG: u32 = 256u;
const ADDERS: u32 = 16u;
var<workgroup> sums: array<f32, WG>;
var<workgroup> parts: array<f32, ADDERS>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let base = group.y * p.dim + group.x * p.len;
  var squares = 0.0;
  for (var i = t; i < p.len; i += WG) { squares += x[base + i] * x[base + i]; }
  sums[t] = squares;
  workgroupBarrier();
  if (t < ADDERS) {
    var part = 0.0;
    for (var i = t; i < WG; i += ADDERS) { part += sums[i]; }
    parts[t] = part;
  }
  workgroupBarrier();
  var total = 0.0;
  for (var i = 0u; i < ADDERS; i++) { total += parts[i]; }
  let inverse = 1.0 / sqrt(total / p.divisor + p.eps);
  let weighted = p.weights > 0u;
  let first = (group.x % max(p.weights, 1u)) * p.len;
  for (var i = t; i < p.len; i += WG) {
    let at = base + i;
    let value = x[at] * inverse * select(1.0, w[select(0u, first + i, weighted)], weighted);
    y[at] = select(value, residual[at * p.has_residual] + value * p.scale, p.has_residual == 1u);
  }
}

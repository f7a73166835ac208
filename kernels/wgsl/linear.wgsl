// linear: y[r] = factor · W · x[r] + b + residual[r], four columns of one row per workgroup (matrix-vector).
//
//   binding 0  x      storage, read        f32 (rows, in_dim)
//   binding 1  w      storage, read        raw blocks, rows of row_bytes
//   binding 2  b      storage, read        f32 (out), looked at where has_bias
//   binding 3  residual storage, read      f32 (rows, y_dim), looked at where has_residual
//   binding 4  y      storage, read_write  f32 (rows, y_dim), columns y_first … y_first + count − 1
//   binding 5  p      uniform              Params
//   dispatch   (ceil(count / 4), rows, 1), x folded into z beyond 65,535; 64 threads each
//   oracle     src/backend/cpu/ops.ts linear; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  in_dim: u32,
  count: u32,
  first: u32, // row of w
  row_bytes: u32,
  y_first: u32,
  y_dim: u32,
  has_bias: u32,
  factor: f32,
  has_residual: u32,
  scale: f32, // of the product, before the residual is added
}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read> residual: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<uniform> p: Params;
const WG: u32 = 64u;
const COLUMNS: u32 = 4u;
var<workgroup> sums: array<vec4<f32>, 64>;
//#splice quant
//#splice product

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let first = (group.z * groups.x + group.x) * COLUMNS;
  let total = product4(group.y * p.in_dim, p.first + first, p.row_bytes, min(COLUMNS, max(p.count, first) - first), t);
  if (t < COLUMNS && first + t < p.count) {
    let column = p.y_first + first + t;
    let value = total[t] * p.factor + select(0.0, b[column * p.has_bias], p.has_bias == 1u);
    let at = group.y * p.y_dim + column;
    y[at] = select(value, residual[at * p.has_residual] + value * p.scale, p.has_residual == 1u);
  }
}

// linear: y[r] = factor · W · norm(x[r]) + b + residual[r] for few rows, ROWS of them by COLUMNS columns per
// workgroup.
//
//   binding 0  x      storage, read        f32 (rows, in_dim)
//   binding 1  w      storage, read        raw blocks, rows of row_bytes
//   binding 2  b      storage, read        f32 (out), read if has_bias
//   binding 3  residual storage, read      f32 (rows, y_dim), read if has_residual
//   binding 4  y      storage, read_write  f32 (rows, y_dim), columns y_first … y_first + count − 1
//   binding 5  batch  storage, read        see batch.ts
//   binding 6  norm   storage, read        f32 (in_dim), read if has_norm
//   binding 7  p      uniform              Params
//   dispatch   (ceil(count / COLUMNS), ceil(rows / ROWS), 1), x folded into z beyond 65,535; WG threads each
//   oracle     src/engine/backends/cpu/ops.ts rmsNorm and linear; tolerance 2e-5 abs + 2e-4 rel
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
  scale: f32, // scale of the product, before the residual is added
  wanted: u32, // 1 if the rows are the wanted ones
  has_norm: u32,
  eps: f32,
}
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read> residual: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(7) var<uniform> p: Params;
const ROWS: u32 = 8u; // tuned: rows
//#splice gemv
//#splice sum
//#splice norm
//#splice quant
//#splice product

@compute @workgroup_size(WG)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  thread: Thread,
) {
  let first = first_column(group, groups);
  if (first >= p.count) { return; }
  let first_row = group.y * ROWS;
  let rows = min(ROWS, select(batch[0].x, batch[0].y, p.wanted == 1u) - first_row);
  let total = product(first_row, rows, p.first + first, p.row_bytes, p.count - first, thread);
  let r = thread.t / COLUMNS;
  let c = thread.t % COLUMNS;
  if (r >= rows || first + c >= p.count) { return; }
  let column = p.y_first + first + c;
  let value = total * inverse_of(r, thread) * p.factor + select(0.0, b[column * p.has_bias], p.has_bias == 1u);
  let at = (first_row + r) * p.y_dim + column;
  y[at] = select(value, residual[at * p.has_residual] + value * p.scale, p.has_residual == 1u);
}

// gated_linear: y[r] = the gating of gate · h + b and up · h + b_up with h = norm(x[r]), ROWS rows by COLUMNS columns
// per workgroup.
//
//   binding 0  x      storage, read        f32 (rows, in_dim)
//   binding 1  w      storage, read        raw blocks of gate, rows of row_bytes
//   binding 2  w_2    storage, read        raw blocks of up, rows of row_bytes_up
//   binding 3  b      storage, read        f32 (count), read if has_bias
//   binding 4  b_up   storage, read        f32 (count), read if has_bias_up
//   binding 5  y      storage, read_write  f32 (rows, count)
//   binding 6  batch  storage, read        see batch.ts
//   binding 7  norm   storage, read        f32 (in_dim), read if has_norm
//   binding 8  p      uniform              Params
//   dispatch   (ceil(count / COLUMNS), ceil(rows / ROWS), 1), x folded into z beyond 65,535; WG threads each
//   oracle     src/engine/backends/cpu/ops.ts rmsNorm and gatedMlp; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  in_dim: u32,
  count: u32,
  first: u32,
  row_bytes: u32,
  has_bias: u32,
  factor: f32,
  first_up: u32,
  row_bytes_up: u32,
  has_bias_up: u32,
  factor_up: f32,
  kind: u32,
  gate_limit: f32,
  up_limit: f32,
  wanted: u32, // 1 where the rows are the wanted ones
  has_norm: u32,
  eps: f32,
}
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read> w_2: array<u32>;
@group(0) @binding(3) var<storage, read> b: array<f32>;
@group(0) @binding(4) var<storage, read> b_up: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(7) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(8) var<uniform> p: Params;
const ROWS: u32 = 8u; // tuned: rows
//#splice activation
//#splice gemv
//#splice sum
//#splice norm
//#splice quant
//#splice product
//#splice quant 2
//#splice product 2

@compute @workgroup_size(WG)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  thread: Thread,
) {
  let first = first_column(group, groups);
  if (first >= p.count) { return; }
  let count = p.count - first;
  let first_row = group.y * ROWS;
  let rows = min(ROWS, select(batch[0].x, batch[0].y, p.wanted == 1u) - first_row);
  let gate = product(first_row, rows, p.first + first, p.row_bytes, count, thread);
  workgroupBarrier();
  let up = product_2(first_row, rows, p.first_up + first, p.row_bytes_up, count, thread);
  let r = thread.t / COLUMNS;
  let c = thread.t % COLUMNS;
  if (r >= rows || c >= count) { return; }
  let column = first + c;
  let inverse = inverse_of(r, thread);
  let left = gate * inverse * p.factor + select(0.0, b[column * p.has_bias], p.has_bias == 1u);
  let right = up * inverse * p.factor_up + select(0.0, b_up[column * p.has_bias_up], p.has_bias_up == 1u);
  y[(first_row + r) * p.count + column] = gated(p.kind, p.gate_limit, p.up_limit, left, right);
}

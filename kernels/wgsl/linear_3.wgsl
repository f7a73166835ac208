// linear_3: three matrices times the same rows, y_i[r] = factor_i · W_i · norm(x[r]) + b_i, ROWS rows by COLUMNS
// columns of one of them per workgroup. Queries, keys and values.
//
//   binding 0  x      storage, read        f32 (rows, in_dim)
//   binding 1  w      storage, read        raw blocks, rows of row_bytes
//   binding 2  w_2    storage, read        raw blocks, rows of row_bytes_2
//   binding 3  w_3    storage, read        raw blocks, rows of row_bytes_3
//   binding 4  y      storage, read_write  f32 (rows, count)
//   binding 5  y_2    storage, read_write  f32 (rows, count_2)
//   binding 6  y_3    storage, read_write  f32 (rows, count_3)
//   binding 7  batch  storage, read        see batch.ts
//   binding 8  norm   storage, read        f32: the norm's (in_dim) where has_norm, then b_1, b_2, b_3 where there are
//              such, from has_bias_i − 1 on
//   binding 9  p      uniform              Params
//   dispatch   (Σ ceil(count_i / COLUMNS), ceil(rows / ROWS), 1), x folded into z beyond 65,535; WG threads each
//   oracle     src/engine/backends/cpu/ops.ts rmsNorm and linear; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  in_dim: u32,
  count: u32,
  first: u32,
  row_bytes: u32,
  factor: f32,
  count_2: u32,
  first_2: u32,
  row_bytes_2: u32,
  factor_2: f32,
  count_3: u32,
  first_3: u32,
  row_bytes_3: u32,
  factor_3: f32,
  wanted: u32, // 1 if the rows are the wanted ones
  has_norm: u32,
  eps: f32,
  has_bias: u32, // 0, or its offset plus one
  has_bias_2: u32,
  has_bias_3: u32,
}
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read> w_2: array<u32>;
@group(0) @binding(3) var<storage, read> w_3: array<u32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read_write> y_2: array<f32>;
@group(0) @binding(6) var<storage, read_write> y_3: array<f32>;
@group(0) @binding(7) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(8) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(9) var<uniform> p: Params;
const ROWS: u32 = 8u; // tuned: rows
//#splice gemv
//#splice sum
//#splice norm
//#splice quant
//#splice product
//#splice quant 2
//#splice product 2
//#splice quant 3
//#splice product 3

/// A sum, completed by the factor and bias of column i.
fn finished(total: f32, inverse: f32, factor: f32, has_bias: u32, i: u32) -> f32 {
  let value = total * inverse * factor;
  if (has_bias == 0u) { return value; }
  return value + norm_at(has_bias - 1u + i);
}

@compute @workgroup_size(WG)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  thread: Thread,
) {
  let index = group.z * groups.x + group.x;
  let second = (p.count + COLUMNS - 1u) / COLUMNS;
  let third = second + (p.count_2 + COLUMNS - 1u) / COLUMNS;
  let end = third + (p.count_3 + COLUMNS - 1u) / COLUMNS;
  if (index >= end) { return; }
  let row = group.y * ROWS;
  let rows = min(ROWS, select(batch[0].x, batch[0].y, p.wanted == 1u) - row);
  let r = thread.t / COLUMNS;
  let c = thread.t % COLUMNS;
  var sums = Sums();
  var column = index * COLUMNS;
  if (index < second) {
    sums = partial(row, rows, p.first + column, p.row_bytes, p.count - column, thread);
  } else if (index < third) {
    column -= second * COLUMNS;
    sums = partial_2(row, rows, p.first_2 + column, p.row_bytes_2, p.count_2 - column, thread);
  } else {
    column -= third * COLUMNS;
    sums = partial_3(row, rows, p.first_3 + column, p.row_bytes_3, p.count_3 - column, thread);
  }
  let total = sum_all(&sums, rows, thread); // once for all three: a third of the code to compile
  column += c;
  if (r >= rows) { return; }
  let inverse = inverse_of(r, thread);
  if (index < second) {
    if (column >= p.count) { return; }
    y[(row + r) * p.count + column] = finished(total, inverse, p.factor, p.has_bias, column);
  } else if (index < third) {
    if (column >= p.count_2) { return; }
    y_2[(row + r) * p.count_2 + column] = finished(total, inverse, p.factor_2, p.has_bias_2, column);
  } else {
    if (column >= p.count_3) { return; }
    y_3[(row + r) * p.count_3 + column] = finished(total, inverse, p.factor_3, p.has_bias_3, column);
  }
}

// matmul: y[r] = factor · W · x[r] + b + residual[r] for many rows, 32 rows by 64 columns per workgroup. Thirty-two
// weights of each column and values of each row at a time lie in workgroup memory, four columns or rows to a vector;
// each thread sums four rows by eight columns in registers.
//
//   binding 0  x        storage, read        f32 (rows, in_dim)
//   binding 1  w        storage, read        raw blocks, rows of row_bytes
//   binding 2  b        storage, read        f32 (out), looked at where has_bias
//   binding 3  residual storage, read        f32 (rows, y_dim), looked at where has_residual
//   binding 4  y        storage, read_write  f32 (rows, y_dim), columns y_first … y_first + count − 1
//   binding 5  batch    storage, read        see batch.ts
//   binding 6  p        uniform              Params
//   dispatch   (ceil(count / 64), ceil(rows / 32), 1), x folded into z beyond 65,535; 64 threads each
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
  wanted: u32, // 1 where the rows are the wanted ones
}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read> residual: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(6) var<uniform> p: Params;
const ROWS: u32 = 32u;
const COLUMNS: u32 = 64u;
const DEPTH: u32 = 32u;
var<workgroup> xs: array<vec4<f32>, 256>; // (DEPTH, ROWS / 4)
var<workgroup> ws: array<vec4<f32>, 512>; // (DEPTH, COLUMNS / 4)
//#splice quant

/// Four values of a row of x from `i`, zeros beyond the row and beyond the last row.
fn x_four(row: u32, rows: u32, i: u32) -> vec4<f32> {
  var four = vec4<f32>();
  if (row >= rows) { return four; }
  let at = row * p.in_dim + i;
  if (i + 4u <= p.in_dim) { return vec4<f32>(x[at], x[at + 1u], x[at + 2u], x[at + 3u]); }
  for (var j = 0u; j < 4u; j++) {
    if (i + j < p.in_dim) { four[j] = x[at + j]; }
  }
  return four;
}

/// Eight weights of a column from `i`, zeros beyond the matrix.
fn w_eight(column: u32, i: u32) -> Eight {
  var eight = Eight(vec4<f32>(), vec4<f32>());
  if (column >= p.count || i >= p.in_dim) { return eight; }
  eight = dequant8((p.first + column) * p.row_bytes + (i / BLOCK_LEN) * BLOCK_BYTES, i % BLOCK_LEN);
  if (i + 8u <= p.in_dim) { return eight; }
  for (var j = 0u; j < 4u; j++) {
    if (i + j >= p.in_dim) { eight.lo[j] = 0.0; }
    if (i + 4u + j >= p.in_dim) { eight.hi[j] = 0.0; }
  }
  return eight;
}

fn load_x(first: u32, rows: u32, depth: u32, t: u32) {
  let group = t % 8u;
  let row = first + group * 4u;
  let i = (t / 8u) * 4u;
  var four = mat4x4<f32>();
  for (var j = 0u; j < 4u; j++) { four[j] = x_four(row + j, rows, depth + i); }
  four = transpose(four);
  for (var j = 0u; j < 4u; j++) { xs[(i + j) * 8u + group] = four[j]; }
}

fn load_w(first: u32, depth: u32, t: u32) {
  let group = t % 16u;
  let column = first + group * 4u;
  let i = (t / 16u) * 8u;
  var lo = mat4x4<f32>();
  var hi = mat4x4<f32>();
  for (var j = 0u; j < 4u; j++) {
    let eight = w_eight(column + j, depth + i);
    lo[j] = eight.lo;
    hi[j] = eight.hi;
  }
  lo = transpose(lo);
  hi = transpose(hi);
  for (var j = 0u; j < 4u; j++) {
    ws[(i + j) * 16u + group] = lo[j];
    ws[(i + 4u + j) * 16u + group] = hi[j];
  }
}

fn store(row: u32, column: u32, sums: vec4<f32>) {
  for (var j = 0u; j < 4u; j++) {
    if (column + j >= p.count) { return; }
    let at = p.y_first + column + j;
    let value = sums[j] * p.factor + select(0.0, b[at * p.has_bias], p.has_bias == 1u);
    let i = row * p.y_dim + at;
    y[i] = select(value, residual[i * p.has_residual] + value * p.scale, p.has_residual == 1u);
  }
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let rows = select(batch[0].x, batch[0].y, p.wanted == 1u);
  let first_row = group.y * ROWS;
  let first_column = (group.z * groups.x + group.x) * COLUMNS;
  let row = t / 8u;
  let column = t % 8u;
  var low = mat4x4<f32>(); // four rows by four columns
  var high = mat4x4<f32>(); // and by the next four
  for (var depth = 0u; depth < p.in_dim; depth += DEPTH) {
    load_x(first_row, rows, depth, t);
    load_w(first_column, depth, t);
    workgroupBarrier();
    for (var k = 0u; k < DEPTH; k++) {
      let values = xs[k * 8u + row];
      let left = ws[k * 16u + column * 2u];
      let right = ws[k * 16u + column * 2u + 1u];
      for (var j = 0u; j < 4u; j++) {
        low[j] += values[j] * left;
        high[j] += values[j] * right;
      }
    }
    workgroupBarrier();
  }
  for (var i = 0u; i < 4u; i++) {
    let r = first_row + row * 4u + i;
    if (r >= rows) { break; }
    store(r, first_column + column * 8u, low[i]);
    store(r, first_column + column * 8u + 4u, high[i]);
  }
}

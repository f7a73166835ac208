// matmul: y[r] = factor · W · x[r] + b + residual[r] for many rows, ROWS by COLUMNS per workgroup.
//
//   binding 0  x        storage, read        f32 (rows, in_dim), or halves of to_halves
//   binding 1  w        storage, read        raw blocks, rows of row_bytes
//   binding 2  b        storage, read        f32 (out), read if has_bias
//   binding 3  residual storage, read        f32 (rows, y_dim), read if has_residual
//   binding 4  y        storage, read_write  f32 (rows, y_dim), columns y_first … y_first + count − 1
//   binding 5  batch    storage, read        see batch.ts
//   binding 6  p        uniform              Params
//   dispatch   (ceil(count / COLUMNS), ceil(rows / ROWS), 1), x folded into z beyond 65,535; WG threads each
//   oracle     src/engine/backends/cpu/ops.ts linear; tolerance 2e-5 abs + 2e-4 rel
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
}
@group(0) @binding(0) var<storage, read> x: array<Given>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read> residual: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(6) var<uniform> p: Params;
const ROWS: u32 = 32u; // tuned: tileRows
//#splice quant
//#splice tile

fn x_row_of(place: u32) -> u32 {
  return place;
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

@compute @workgroup_size(WG)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  thread: Thread,
) {
  let rows = select(batch[0].x, batch[0].y, p.wanted == 1u);
  let first_row = group.y * ROWS;
  let first_column = (group.z * groups.x + group.x) * COLUMNS;
  let sums = tile_product(first_row, rows, p.first, p.count, first_column, thread);
  let row = first_row + row_in_tile(thread.t);
  let column = first_column + column_in_tile(thread.t);
  for (var i = 0u; i < 4u; i++) {
    if (row + i >= rows) { break; }
    store(row + i, column, sums.low[i]);
    store(row + i, column + 4u, sums.high[i]);
  }
}

// moe_matmul: y[i] = factor[e] · W[e] · x[i / x_div] + bias[e] for each choice i of an expert e, 32 choices of one
// expert by COLUMNS columns per workgroup.
//
//   binding 0  x       storage, read        f32 (choices / x_div, in_dim), or halves of to_halves
//   binding 1  w       storage, read        raw blocks of experts first_expert …, rows of row_bytes
//   binding 2  order   storage, read        u32 (choices), see moe_group
//   binding 3  tiles   storage, read        u32 (1 + choices, 2), see moe_group
//   binding 4  factors storage, read        f32 (all experts), read if has_factors
//   binding 5  y       storage, read_write  f32 (choices, count)
//   binding 6  biases  storage, read        f32 (all experts, count), read if has_bias
//   binding 7  p       uniform              Params
//   dispatch   (ceil(count / COLUMNS), ceil(choices / 32) + experts, 1), x folded into z beyond 65,535; WG threads each
//   oracle     src/engine/backends/cpu/ops.ts moe; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  in_dim: u32,
  count: u32,
  first_expert: u32,
  experts: u32, // in this piece
  expert_rows: u32,
  row_start: u32,
  row_bytes: u32,
  x_div: u32,
  has_factors: u32,
  has_bias: u32,
}
@group(0) @binding(0) var<storage, read> x: array<Given>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read> order: array<u32>;
@group(0) @binding(3) var<storage, read> tiles: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read> factors: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read> biases: array<f32>;
@group(0) @binding(7) var<uniform> p: Params;
const ROWS: u32 = 32u; // the tiles of moe_group
//#splice quant
//#splice tile

fn x_row_of(place: u32) -> u32 {
  return order[place] / p.x_div;
}

fn store(choice: u32, expert: u32, column: u32, sums: vec4<f32>) {
  for (var j = 0u; j < 4u; j++) {
    if (column + j >= p.count) { return; }
    let bias = select(0.0, biases[(expert * p.count + column + j) * p.has_bias], p.has_bias == 1u);
    y[choice * p.count + column + j] = sums[j] + bias;
  }
}

@compute @workgroup_size(WG)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  thread: Thread,
) {
  if (group.y >= tiles[0].x) { return; }
  let tile = tiles[1u + group.y];
  let expert = tile.x & 0xffffu;
  if (expert < p.first_expert || expert - p.first_expert >= p.experts) { return; }
  let end = tile.y + (tile.x >> 16u);
  let w_row = (expert - p.first_expert) * p.expert_rows + p.row_start;
  let first_column = (group.z * groups.x + group.x) * COLUMNS;
  let sums = tile_product(tile.y, end, w_row, p.count, first_column, thread);
  let factor = select(1.0, factors[expert * p.has_factors], p.has_factors == 1u);
  let place = tile.y + row_in_tile(thread.t);
  let column = first_column + column_in_tile(thread.t);
  for (var i = 0u; i < 4u; i++) {
    if (place + i >= end) { break; }
    store(order[place + i], expert, column, sums.low[i] * factor);
    store(order[place + i], expert, column + 4u, sums.high[i] * factor);
  }
}

// moe_linear: y[i] = factor[e] · W[e] · x[i / x_div] + bias[e] for each choice i of an expert e, COLUMNS columns per
// workgroup.
//
//   binding 0  x       storage, read        f32 (choices / x_div, in_dim)
//   binding 1  w       storage, read        raw blocks of experts first_expert …, rows of row_bytes
//   binding 2  choices storage, read        u32 (choices, 2): expert, and its share
//   binding 3  factors storage, read        f32 (experts), read if has_factors
//   binding 4  y       storage, read_write  f32 (choices, out_dim)
//   binding 5  biases  storage, read        f32 (experts, out_dim), read if has_bias
//   binding 6  p       uniform              Params
//   dispatch   (ceil(out_dim / COLUMNS), choices, 1), x folded into z beyond 65,535; WG threads each
//   oracle     src/engine/backends/cpu/ops.ts moe; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  in_dim: u32,
  out_dim: u32,
  first_expert: u32,
  experts: u32, // in this piece
  expert_rows: u32,
  row_start: u32,
  row_bytes: u32,
  x_div: u32,
  has_factors: u32,
  has_bias: u32,
  cyclic: u32, // 0, or: choice i is of expert i modulo this, and `choices` is not read
}
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read> choices: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> factors: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read> biases: array<f32>;
@group(0) @binding(6) var<uniform> p: Params;
const ROWS: u32 = 1u;
//#splice gemv
//#splice sum
//#splice unnormed
//#splice quant
//#splice product

fn expert_of(choice: u32) -> u32 {
  if (p.cyclic > 0u) { return choice % p.cyclic; }
  return choices[choice].x;
}

@compute @workgroup_size(WG)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  thread: Thread,
) {
  let choice = group.y;
  let expert = expert_of(choice);
  if (expert < p.first_expert || expert - p.first_expert >= p.experts) { return; }
  let first = first_column(group, groups);
  if (first >= p.out_dim) { return; }
  let row = (expert - p.first_expert) * p.expert_rows + p.row_start + first;
  let total = product(choice / p.x_div, 1u, row, p.row_bytes, p.out_dim - first, thread);
  let c = thread.t;
  if (c >= COLUMNS || first + c >= p.out_dim) { return; }
  let factor = select(1.0, factors[expert * p.has_factors], p.has_factors == 1u);
  let bias = select(0.0, biases[(expert * p.out_dim + first + c) * p.has_bias], p.has_bias == 1u);
  y[choice * p.out_dim + first + c] = total * factor + bias;
}

// moe_down: y[r] = residual[r] + scale · Σ share[i] · (factor[e] · W[e] · x[i] + bias[e]) over the choices i of
// experts e by row r, COLUMNS columns per workgroup.
//
//   binding 0  x        storage, read        f32 (rows, used, in_dim)
//   binding 1  w        storage, read        raw blocks of experts first_expert …, rows of row_bytes
//   binding 2  choices  storage, read        u32 (rows, used, 2): expert, and its share as bits of a float
//   binding 3  residual storage, read        f32 (rows, out_dim), read if base is 1
//   binding 4  y        storage, read_write  f32 (rows, out_dim)
//   binding 5  factors  storage, read        f32 (all experts), read if has_factors
//   binding 6  biases   storage, read        f32 (all experts, out_dim), read if has_bias
//   binding 7  p        uniform              Params
//   dispatch   (ceil(out_dim / COLUMNS), rows, 1), x folded into z beyond 65,535; WG threads each
//   oracle     src/engine/backends/cpu/ops.ts moe; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  in_dim: u32,
  out_dim: u32,
  first_expert: u32,
  experts: u32, // in this piece
  expert_rows: u32,
  row_start: u32,
  row_bytes: u32,
  used: u32,
  base: u32, // the sum's initial value: 0 zero, 1 residual, 2 y with the earlier experts
  scale: f32,
  has_factors: u32,
  has_bias: u32,
  weighs: u32, // 0: every share is 1
}
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read> choices: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> residual: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read> factors: array<f32>;
@group(0) @binding(6) var<storage, read> biases: array<f32>;
@group(0) @binding(7) var<uniform> p: Params;
const ROWS: u32 = 1u;
//#splice gemv
//#splice sum
//#splice unnormed
//#splice quant
//#splice product

fn share_of(choice: u32) -> f32 {
  return select(1.0, bitcast<f32>(choices[choice].y), p.weighs == 1u);
}

/// Σ share · bias of a row's experts in this piece.
fn bias_of(row: u32, column: u32) -> f32 {
  if (p.has_bias == 0u) { return 0.0; }
  var sum = 0.0;
  for (var choice = row * p.used; choice < (row + 1u) * p.used; choice++) {
    let expert = choices[choice].x;
    if (expert < p.first_expert || expert - p.first_expert >= p.experts) { continue; }
    sum += share_of(choice) * biases[expert * p.out_dim + column];
  }
  return sum;
}

@compute @workgroup_size(WG)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  thread: Thread,
) {
  let first = first_column(group, groups);
  if (first >= p.out_dim) { return; }
  var sums = Sums();
  for (var j = 0u; j < p.used; j++) {
    let choice = group.y * p.used + j;
    let expert = choices[choice].x;
    if (expert < p.first_expert || expert - p.first_expert >= p.experts) { continue; }
    let row = (expert - p.first_expert) * p.expert_rows + p.row_start + first;
    let factor = select(1.0, factors[expert * p.has_factors], p.has_factors == 1u);
    let part = partial(choice, 1u, row, p.row_bytes, p.out_dim - first, thread);
    for (var c = 0u; c < COLUMNS; c++) { sums[c] += part[c] * (share_of(choice) * factor); }
  }
  let total = sum_all(&sums, 1u, thread);
  let column = first + thread.t;
  if (thread.t >= COLUMNS || column >= p.out_dim) { return; }
  let at = group.y * p.out_dim + column;
  let value = (total + bias_of(group.y, column)) * p.scale;
  switch p.base {
    case 0u: { y[at] = value; }
    case 1u: { y[at] = residual[at] + value; }
    default: { y[at] += value; }
  }
}

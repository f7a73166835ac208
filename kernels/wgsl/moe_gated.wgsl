// moe_gated: y[i] = the gating of f[e] · gate[e] · h + b[e] and f_up[e] · up[e] · h + b_up[e] with h = norm(x[r]), for
// each choice i of an expert e by row r. COLUMNS columns per workgroup. moe_gated_shared also computes the shared
// expert's MLP: with `share` in place of `unshared`.
//
//   binding 0  x       storage, read        f32 (rows, in_dim)
//   binding 1  w       storage, read        raw blocks of gate of experts first_expert …, rows of row_bytes
//   binding 2  w_2     storage, read        raw blocks of up of the same experts, rows of row_bytes_up
//   binding 3  w_3     storage, read        raw blocks of gate for every row, rows of row_bytes_3
//   binding 4  w_4     storage, read        raw blocks of up for every row, rows of row_bytes_4
//   binding 5  choices storage, read        u32 (rows, used, 2): expert, and its share
//   binding 6  norm    storage, read        f32: the norm's (in_dim) where has_norm, then the factors (2, all_experts)
//              of gate and up from has_factors − 1 on, and their biases (2, all_experts, count) from has_bias − 1 on
//   binding 7  y       storage, read_write  f32 (rows, used, count)
//   binding 8  shared_y storage, read_write  f32 (rows, shared_count)
//   binding 9  p       uniform              Params
//   dispatch   (ceil(max(count, shared_count) / COLUMNS), rows · (used + 1 where shared_count > 0), 1), x folded into z
//              beyond 65,535; WG threads each
//   oracle     src/engine/backends/cpu/ops.ts rmsNorm, moe and gatedMlp; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  in_dim: u32,
  count: u32,
  first_expert: u32,
  experts: u32, // in this piece
  expert_rows: u32,
  row_start: u32,
  row_bytes: u32,
  expert_rows_up: u32,
  row_start_up: u32,
  row_bytes_up: u32,
  used: u32,
  kind: u32,
  all_experts: u32,
  has_norm: u32,
  eps: f32,
  has_factors: u32, // 0, or their offset plus one
  has_bias: u32, // the same
  gate_limit: f32,
  up_limit: f32,
  shared_count: u32, // 0 without a shared expert
  first_3: u32,
  row_bytes_3: u32,
  first_4: u32,
  row_bytes_4: u32,
}
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read> w_2: array<u32>;
@group(0) @binding(3) var<storage, read> w_3: array<u32>;
@group(0) @binding(4) var<storage, read> w_4: array<u32>;
@group(0) @binding(5) var<storage, read> choices: array<vec2<u32>>;
@group(0) @binding(6) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> y: array<f32>;
@group(0) @binding(8) var<storage, read_write> shared_y: array<f32>;
@group(0) @binding(9) var<uniform> p: Params;
const ROWS: u32 = 1u;
//#splice activation
//#splice gemv
//#splice sum
//#splice norm
//#splice quant
//#splice product
//#splice quant 2
//#splice product 2
//#splice unshared

/// The factor of an expert's matrix, gate's or up's.
fn factor_of(matrix: u32, expert: u32) -> f32 {
  if (p.has_factors == 0u) { return 1.0; }
  return norm_at(p.has_factors - 1u + matrix * p.all_experts + expert);
}

/// The bias of an expert's matrix.
fn bias_of(matrix: u32, expert: u32, column: u32) -> f32 {
  if (p.has_bias == 0u) { return 0.0; }
  return norm_at(p.has_bias - 1u + (matrix * p.all_experts + expert) * p.count + column);
}

@compute @workgroup_size(WG)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  thread: Thread,
) {
  let first = first_column(group, groups);
  let turns = p.used + select(0u, 1u, p.shared_count > 0u);
  let row = group.y / turns;
  let turn = group.y % turns;
  if (turn == p.used) {
    share(row, first, thread);
    return;
  }
  if (first >= p.count) { return; }
  let choice = row * p.used + turn;
  let expert = choices[choice].x;
  if (expert < p.first_expert || expert - p.first_expert >= p.experts) { return; }
  let at = expert - p.first_expert;
  let count = p.count - first;
  let gate = product(row, 1u, at * p.expert_rows + p.row_start + first, p.row_bytes, count, thread);
  workgroupBarrier();
  let up = product_2(row, 1u, at * p.expert_rows_up + p.row_start_up + first, p.row_bytes_up, count, thread);
  if (thread.t >= COLUMNS || thread.t >= count) { return; }
  let inverse = inverse_of(0u, thread);
  let column = first + thread.t;
  let left = gate * inverse * factor_of(0u, expert) + bias_of(0u, expert, column);
  let right = up * inverse * factor_of(1u, expert) + bias_of(1u, expert, column);
  y[choice * p.count + column] = gated(p.kind, p.gate_limit, p.up_limit, left, right);
}

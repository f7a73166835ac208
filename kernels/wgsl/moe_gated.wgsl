// moe_gated: y[i] = act(f[e] · gate[e] · h) ⊙ (f_up[e] · up[e] · h) with h = norm(x[r]), for each choice i of an
// expert e by row r, COLUMNS columns per workgroup.
//
//   binding 0  x       storage, read        f32 (rows, in_dim)
//   binding 1  w       storage, read        raw blocks of gate of experts first_expert …, rows of row_bytes
//   binding 2  w_2     storage, read        raw blocks of up of the same experts, rows of row_bytes_up
//   binding 3  ids     storage, read        u32 (rows, used)
//   binding 4  factors storage, read        f32 (2, all experts) of gate and up, looked at where all_experts > 0
//   binding 5  y       storage, read_write  f32 (rows, used, count)
//   binding 6  norm    storage, read        f32 (in_dim), looked at where has_norm
//   binding 7  p       uniform              Params
//   dispatch   (ceil(count / COLUMNS), rows · used, 1), x folded into z beyond 65,535; WG threads each
//   oracle     src/backend/cpu/ops.ts rmsNorm and moe; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  in_dim: u32,
  count: u32,
  first_expert: u32,
  experts: u32, // of this piece
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
}
@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read> w_2: array<u32>;
@group(0) @binding(3) var<storage, read> ids: array<u32>;
@group(0) @binding(4) var<storage, read> factors: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<storage, read> norm: array<vec4<f32>>;
@group(0) @binding(7) var<uniform> p: Params;
const ROWS: u32 = 1u;
//#splice activation
//#splice few
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
  let choice = group.y;
  let expert = ids[choice];
  if (expert < p.first_expert || expert - p.first_expert >= p.experts) { return; }
  let first = first_column(group, groups);
  if (first >= p.count) { return; }
  let at = expert - p.first_expert;
  let row = choice / p.used;
  let count = p.count - first;
  measure(row, 1u, thread);
  let gate_row = at * p.expert_rows + p.row_start + first;
  let gate = product(row, 1u, gate_row, p.row_bytes, count, thread);
  workgroupBarrier();
  let up_row = at * p.expert_rows_up + p.row_start_up + first;
  let up = product_2(row, 1u, up_row, p.row_bytes_up, count, thread);
  let c = thread.t;
  if (c >= COLUMNS || c >= count) { return; }
  let inverse = inverse_of(0u);
  let has_factors = p.all_experts > 0u;
  let factor = select(1.0, factors[select(0u, expert, has_factors)], has_factors);
  let factor_up = select(1.0, factors[select(0u, p.all_experts + expert, has_factors)], has_factors);
  y[choice * p.count + first + c] = activate(p.kind, gate * inverse * factor) * (up * inverse * factor_up);
}

// moe_route: the `used` largest of softmax(logits) of each row, best first, the lower index on a tie.
//
//   binding 0  logits  storage, read        f32 (rows, experts)
//   binding 1  ids     storage, read_write  u32 (rows, used)
//   binding 2  shares  storage, read_write  f32 (rows, used)
//   binding 3  p       uniform              Params
//   dispatch   (1, rows, 1), 64 threads each; at most 512 experts
//   oracle     src/engine/backends/cpu/ops.ts moe; tolerance 3e-6 rel
struct Params { experts: u32, used: u32, normalize: u32, scale: f32 }
@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> ids: array<u32>;
@group(0) @binding(2) var<storage, read_write> shares: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;
const WG: u32 = 64u;
//#splice route

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  choose(group.y, p.experts, p.used, t);
  let weights = weigh(p.experts, p.used, t);
  for (var j = t; j < p.used; j += WG) {
    ids[group.y * p.used + j] = chosen[j];
    shares[group.y * p.used + j] = exp(row_logit(chosen[j]) - weights.x) * weights.y;
  }
}

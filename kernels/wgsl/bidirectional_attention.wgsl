// bidirectional_attention: one head of one row over all rows of its sequence, by online softmax over tiles of 64 rows.
//
//   binding 0  q      storage, read        f32 (rows, heads · headDim)
//   binding 1  k      storage, read        f32 (rows, heads · headDim)
//   binding 2  v      storage, read        f32 (rows, heads · headDim)
//   binding 3  batch  storage, read        see batch.ts
//   binding 4  y      storage, read_write  f32 (rows, heads · headDim)
//   binding 5  p      uniform              Params
//   dispatch   (heads, rows, 1), 64 threads each; headDim at most 256
//   oracle     src/backend/cpu/ops.ts bidirectionalAttention; tolerance 2e-5 abs + 2e-4 rel
struct Params { heads: u32, head_dim: u32, scale: f32 }
@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> k: array<f32>;
@group(0) @binding(2) var<storage, read> v: array<f32>;
@group(0) @binding(3) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<uniform> p: Params;
const WG: u32 = 64u;
var<workgroup> query: array<f32, 256>;
var<workgroup> scores: array<f32, 64>;
var<workgroup> shares: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let sequence = batch[2u + 2u * group.y]; // first row, end
  let dim = p.heads * p.head_dim;
  let base = group.x * p.head_dim;
  let q_at = group.y * dim + base;
  for (var i = t; i < p.head_dim; i += WG) { query[i] = q[q_at + i] * p.scale; }
  workgroupBarrier();
  var most = -1e30;
  var total = 0.0;
  var sums = vec4<f32>();
  for (var tile = sequence.x; tile < sequence.y; tile += WG) {
    let other = tile + t;
    var score = -1e30;
    if (other < sequence.y) {
      score = 0.0;
      for (var i = 0u; i < p.head_dim; i++) { score += query[i] * k[other * dim + base + i]; }
    }
    scores[t] = score;
    workgroupBarrier();
    var peak = most;
    for (var i = 0u; i < WG; i++) { peak = max(peak, scores[i]); }
    shares[t] = select(0.0, exp(score - peak), other < sequence.y);
    workgroupBarrier();
    let kept = exp(most - peak);
    most = peak;
    total *= kept;
    sums *= kept;
    let count = min(WG, sequence.y - tile);
    for (var j = 0u; j < count; j++) {
      let share = shares[j];
      let at = (tile + j) * dim + base;
      total += share;
      for (var c = 0u; c < 4u; c++) {
        let i = t + c * WG;
        if (i < p.head_dim) { sums[c] += share * v[at + i]; }
      }
    }
  }
  for (var c = 0u; c < 4u; c++) {
    let i = t + c * WG;
    if (i < p.head_dim) { y[q_at + i] = sums[c] / total; }
  }
}

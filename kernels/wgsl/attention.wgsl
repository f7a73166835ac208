// attention: one head of one row over what its slot holds, from the window's start up to the row's own position, by
// online softmax over tiles of 64 positions (arXiv:1805.02867). The floor is finite: there is no inf − inf.
//
//   binding 0  q      storage, read        f32 (rows, heads · headDim)
//   binding 1  keys   storage, read        f32 (slots, ctxLen, kvHeads · headDim)
//   binding 2  values storage, read        f32 (slots, ctxLen, kvHeads · headDim)
//   binding 3  batch  storage, read        see batch.ts
//   binding 4  y      storage, read_write  f32 (rows, heads · headDim)
//   binding 5  p      uniform              Params
//   dispatch   (heads, rows, 1), 64 threads each; headDim at most 256
//   oracle     src/backend/cpu/ops.ts attention; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  heads: u32,
  kv_heads: u32,
  head_dim: u32,
  ctx_len: u32,
  window: u32,
  scale: f32,
  soft_cap: f32,
}
@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> keys: array<f32>;
@group(0) @binding(2) var<storage, read> values: array<f32>;
@group(0) @binding(3) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<uniform> p: Params;
const WG: u32 = 64u;
var<workgroup> query: array<f32, 256>;
var<workgroup> scores: array<f32, 64>;
var<workgroup> shares: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = batch[1u + 2u * group.y];
  let end = row.z + 1u;
  let start = select(0u, end - min(end, p.window), p.window > 0u);
  let kv_dim = p.kv_heads * p.head_dim;
  let base = row.y * p.ctx_len * kv_dim + (group.x * p.kv_heads / p.heads) * p.head_dim;
  let q_at = (group.y * p.heads + group.x) * p.head_dim;
  for (var i = t; i < p.head_dim; i += WG) { query[i] = q[q_at + i] * p.scale; }
  workgroupBarrier();
  var most = -1e30;
  var total = 0.0;
  var sums = vec4<f32>();
  for (var tile = start; tile < end; tile += WG) {
    let position = tile + t;
    var score = -1e30;
    if (position < end) {
      score = 0.0;
      let at = base + position * kv_dim;
      for (var i = 0u; i < p.head_dim; i++) { score += query[i] * keys[at + i]; }
      if (p.soft_cap > 0.0) { score = p.soft_cap * tanh(clamp(score / p.soft_cap, -15.0, 15.0)); }
    }
    scores[t] = score;
    workgroupBarrier();
    var peak = most;
    for (var i = 0u; i < WG; i++) { peak = max(peak, scores[i]); }
    shares[t] = select(0.0, exp(score - peak), position < end);
    workgroupBarrier();
    let kept = exp(most - peak);
    most = peak;
    total *= kept;
    sums *= kept;
    let count = min(WG, end - tile);
    for (var j = 0u; j < count; j++) {
      let share = shares[j];
      let at = base + (tile + j) * kv_dim;
      total += share;
      for (var c = 0u; c < 4u; c++) {
        let i = t + c * WG;
        if (i < p.head_dim) { sums[c] += share * values[at + i]; }
      }
    }
  }
  for (var c = 0u; c < 4u; c++) {
    let i = t + c * WG;
    if (i < p.head_dim) { y[q_at + i] = sums[c] / total; }
  }
}

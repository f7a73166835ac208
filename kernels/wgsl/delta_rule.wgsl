// delta_rule: the gated delta rule (arXiv:2412.06464), rows of a sequence one after another. A row of a head's matrix M
// belongs to one value channel and depends on no other row: `lanes` threads keep it in registers. The sums M k, M q and
// k · q are made at once, since (M + c kᵀ) q = M q + c (k · q).
//
//   binding 0  q      storage, read        f32 (rows, key_heads · width)
//   binding 1  k      storage, read        as q
//   binding 2  v      storage, read        f32 (rows, heads · width)
//   binding 3  alpha  storage, read        f32 (rows, heads · alphas)
//   binding 4  beta   storage, read        f32 (rows, heads)
//   binding 5  rates  storage, read        f32 a (heads), then dt (heads · alphas)
//   binding 6  batch  uniform              see batch.ts
//   binding 7  state  storage, read_write  f32 (slots, heads, width, width)
//   binding 8  y      storage, read_write  f32 (rows, heads · width)
//   binding 9  p      uniform              Params
//   dispatch   (ceil(heads · width · lanes / 64), sequences, 1), 64 threads each
//   oracle     src/engine/backends/cpu/recurrent.ts deltaRule; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  heads: u32,
  key_heads: u32,
  width: u32, // values per head
  lanes: u32,
  alphas: u32, // decays of a head: 1, or one per channel
  repeat: u32, // 1: neighbouring heads share a key head
  scale: f32,
  bounded: u32,
  bound: f32,
}
@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> k: array<f32>;
@group(0) @binding(2) var<storage, read> v: array<f32>;
@group(0) @binding(3) var<storage, read> alpha: array<f32>;
@group(0) @binding(4) var<storage, read> beta: array<f32>;
@group(0) @binding(5) var<storage, read> rates: array<f32>;
@group(0) @binding(6) var<uniform> batch: array<vec4<u32>, 4096>;
@group(0) @binding(7) var<storage, read_write> state: array<f32>;
@group(0) @binding(8) var<storage, read_write> y: array<f32>;
@group(0) @binding(9) var<uniform> p: Params;
const WG: u32 = 64u;
//#splice lanes
//#splice softplus

fn read_q(at: u32, lane: u32) -> mat4x4<f32> {
  var m = mat4x4<f32>();
  for (var c = 0u; c < 4u; c++) {
    for (var i = 0u; i < 4u; i++) {
      let e = at_lane(lane, c, i);
      if (e < p.width) { m[c][i] = q[at + e]; }
    }
  }
  return m;
}

fn read_k(at: u32, lane: u32) -> mat4x4<f32> {
  var m = mat4x4<f32>();
  for (var c = 0u; c < 4u; c++) {
    for (var i = 0u; i < 4u; i++) {
      let e = at_lane(lane, c, i);
      if (e < p.width) { m[c][i] = k[at + e]; }
    }
  }
  return m;
}

fn decay_of(a: f32, rate: f32) -> f32 {
  if (p.bounded == 1u) { return exp(p.bound / (1.0 + exp(-max(a * rate, -80.0)))); }
  return exp(a * softplus(rate));
}

/// The decays of a thread's channels.
fn decays(row: u32, head: u32, lane: u32) -> mat4x4<f32> {
  let a = rates[head];
  if (p.alphas == 1u) {
    let four = vec4<f32>(decay_of(a, alpha[row * p.heads + head] + rates[p.heads + head]));
    return mat4x4<f32>(four, four, four, four);
  }
  var m = mat4x4<f32>();
  for (var c = 0u; c < 4u; c++) {
    for (var i = 0u; i < 4u; i++) {
      let e = at_lane(lane, c, i);
      if (e >= p.width) { continue; }
      let channel = head * p.width + e;
      m[c][i] = decay_of(a, alpha[row * p.heads * p.width + channel] + rates[p.heads + channel]);
    }
  }
  return m;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let count = p.heads * p.width; // rows of the state
  let each = WG / p.lanes; // rows per workgroup
  let own = (group.x * each) + t / p.lanes;
  let line = min(own, count - 1u);
  let lane = t % p.lanes;
  let head = line / p.width;
  let key_head = select(head % p.key_heads, head * p.key_heads / p.heads, p.repeat == 1u);
  let last = batch[2u + 3u * group.y].z;
  let first = batch[2u + 3u * last].x;
  let start = batch[1u + 3u * first]; // token, slot, cell
  let base = (start.y * count + line) * p.width;
  var m = mat4x4<f32>();
  if (start.z > 0u) {
    for (var c = 0u; c < 4u; c++) {
      for (var i = 0u; i < 4u; i++) {
        let e = at_lane(lane, c, i);
        if (e < p.width) { m[c][i] = state[base + e]; }
      }
    }
  }
  for (var row = first; row <= last; row++) {
    let key = read_k((row * p.key_heads + key_head) * p.width, lane);
    let query = read_q((row * p.key_heads + key_head) * p.width, lane);
    m = multiply_lanes(m, decays(row, head, lane));
    let part = vec4<f32>(dot_lanes(m, key), dot_lanes(m, query), dot_lanes(key, query), 0.0);
    let sums = sum_lanes(part, t, row);
    let rate = 1.0 / (1.0 + exp(-max(beta[row * p.heads + head], -80.0)));
    let change = rate * (v[row * count + line] - sums.x);
    m += change * key;
    if (lane == 0u && own < count) { y[row * count + line] = p.scale * (sums.y + change * sums.z); }
  }
  if (own >= count) { return; }
  for (var c = 0u; c < 4u; c++) {
    for (var i = 0u; i < 4u; i++) {
      let e = at_lane(lane, c, i);
      if (e < p.width) { state[base + e] = m[c][i]; }
    }
  }
}

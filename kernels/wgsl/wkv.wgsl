// wkv: the recurrence of RWKV 6 and 7, rows of a sequence one after another. A row of a head's state S belongs to one
// value and depends on no other row: `lanes` threads keep it in registers. All sums of a row are made at once, since
// (S ⊙ g − (S a) bᵀ + v kᵀ) r = (S ⊙ g) r − (S a) (b · r) + v (k · r).
//
//   binding 0  r      storage, read        f32 (rows, heads · width)
//   binding 1  w      storage, read        as r
//   binding 2  k      storage, read        f32 (rows, key_heads · width)
//   binding 3  v      storage, read        as k
//   binding 4  a      storage, read        as r; unused without `removes`
//   binding 5  b      storage, read        as a
//   binding 6  batch  uniform              see batch.ts
//   binding 7  state  storage, read_write  f32 (slots, heads, width, width)
//   binding 8  y      storage, read_write  as r
//   binding 9  p      uniform              Params
//   dispatch   (ceil(heads · width · lanes / 64), sequences, 1), 64 threads each
//   oracle     src/engine/backends/cpu/recurrent.ts wkv; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  heads: u32,
  key_heads: u32,
  width: u32, // values per head
  lanes: u32,
  removes: u32,
  early: u32, // 1: y reads the state before the row
  complement: u32,
  bounded: u32,
  bound: f32,
}
@group(0) @binding(0) var<storage, read> r: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<storage, read> k: array<f32>;
@group(0) @binding(3) var<storage, read> v: array<f32>;
@group(0) @binding(4) var<storage, read> a: array<f32>;
@group(0) @binding(5) var<storage, read> b: array<f32>;
@group(0) @binding(6) var<uniform> batch: array<vec4<u32>, 4096>;
@group(0) @binding(7) var<storage, read_write> state: array<f32>;
@group(0) @binding(8) var<storage, read_write> y: array<f32>;
@group(0) @binding(9) var<uniform> p: Params;
const WG: u32 = 64u;
//#splice lanes

fn decay_of(rate: f32) -> f32 {
  if (p.bounded == 1u) { return exp(p.bound / (1.0 + exp(-max(rate, -80.0)))); }
  return exp(-exp(min(rate, 80.0)));
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let count = p.heads * p.width; // rows of the state
  let own = (group.x * (WG / p.lanes)) + t / p.lanes;
  let line = min(own, count - 1u);
  let lane = t % p.lanes;
  let head = line / p.width;
  let key_head = head * p.key_heads / p.heads;
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
    let from_own = row * count + head * p.width;
    let from_key = (row * p.key_heads + key_head) * p.width;
    var query = mat4x4<f32>();
    var decay = mat4x4<f32>();
    var key = mat4x4<f32>();
    var known = mat4x4<f32>(); // a
    var removed = mat4x4<f32>(); // b
    for (var c = 0u; c < 4u; c++) {
      for (var i = 0u; i < 4u; i++) {
        let e = at_lane(lane, c, i);
        if (e >= p.width) { continue; }
        query[c][i] = r[from_own + e];
        let g = decay_of(w[from_own + e]);
        decay[c][i] = g;
        key[c][i] = k[from_key + e] * select(1.0, 1.0 - g, p.complement == 1u);
        if (p.removes == 1u) {
          known[c][i] = a[from_own + e];
          removed[c][i] = b[from_own + e];
        }
      }
    }
    let value = v[from_key + line % p.width];
    let decayed = multiply_lanes(m, decay);
    var read = dot_lanes(decayed, query);
    if (p.early == 1u) { read = dot_lanes(m, query); }
    let part = vec4<f32>(read, dot_lanes(m, known), dot_lanes(removed, query), dot_lanes(key, query));
    let sums = sum_lanes(part, t, row);
    m = decayed - sums.y * removed + value * key;
    if (lane == 0u && own < count) {
      y[row * count + line] = select(sums.x - sums.y * sums.z + value * sums.w, sums.x, p.early == 1u);
    }
  }
  if (own >= count) { return; }
  for (var c = 0u; c < 4u; c++) {
    for (var i = 0u; i < 4u; i++) {
      let e = at_lane(lane, c, i);
      if (e < p.width) { state[base + e] = m[c][i]; }
    }
  }
}

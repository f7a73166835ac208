// selective_scan: the scan of Mamba, rows of a sequence one after another. A row of a head's state belongs to one value
// and depends on no other row: `lanes` threads keep it in registers.
//
//   binding 0  x      storage, read        f32 (rows, heads · head_dim)
//   binding 1  dt     storage, read        f32 (rows, heads)
//   binding 2  b      storage, read        f32 (rows, groups · width)
//   binding 3  c      storage, read        as b
//   binding 4  rates  storage, read        f32 bias of dt (heads), d (heads), then a (heads · decays)
//   binding 5  batch  storage, read        see batch.ts
//   binding 6  state  storage, read_write  f32 (slots, heads, head_dim, width)
//   binding 7  y      storage, read_write  f32 (rows, heads · head_dim)
//   binding 8  p      uniform              Params
//   dispatch   (ceil(heads · head_dim · lanes / 64), sequences, 1), 64 threads each
//   oracle     src/engine/backends/cpu/recurrent.ts selectiveScan; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  heads: u32,
  head_dim: u32,
  width: u32, // values of a state's row
  lanes: u32,
  groups: u32,
  decays: u32, // per head: 1, or one per value of the state
}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> dt: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read> c: array<f32>;
@group(0) @binding(4) var<storage, read> rates: array<f32>;
@group(0) @binding(5) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read_write> state: array<f32>;
@group(0) @binding(7) var<storage, read_write> y: array<f32>;
@group(0) @binding(8) var<uniform> p: Params;
const WG: u32 = 64u;
//#splice lanes
//#splice softplus

fn read_b(at: u32, lane: u32) -> mat4x4<f32> {
  var m = mat4x4<f32>();
  for (var column = 0u; column < 4u; column++) {
    for (var i = 0u; i < 4u; i++) {
      let e = at_lane(lane, column, i);
      if (e < p.width) { m[column][i] = b[at + e]; }
    }
  }
  return m;
}

fn read_c(at: u32, lane: u32) -> mat4x4<f32> {
  var m = mat4x4<f32>();
  for (var column = 0u; column < 4u; column++) {
    for (var i = 0u; i < 4u; i++) {
      let e = at_lane(lane, column, i);
      if (e < p.width) { m[column][i] = c[at + e]; }
    }
  }
  return m;
}

/// A head's rates of decay for the values of a thread.
fn read_a(head: u32, lane: u32) -> mat4x4<f32> {
  let first = 2u * p.heads + head * p.decays;
  var m = mat4x4<f32>();
  for (var column = 0u; column < 4u; column++) {
    for (var i = 0u; i < 4u; i++) {
      let e = at_lane(lane, column, i);
      if (e < p.width) { m[column][i] = rates[first + min(e, p.decays - 1u)]; }
    }
  }
  return m;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let count = p.heads * p.head_dim; // rows of the state
  let each = WG / p.lanes; // rows per workgroup
  let own = (group.x * each) + t / p.lanes;
  let line = min(own, count - 1u);
  let lane = t % p.lanes;
  let head = line / p.head_dim;
  let shared_by = head * p.groups / p.heads;
  let last = batch[2u + 3u * group.y].z;
  let first = batch[2u + 3u * last].x;
  let start = batch[1u + 3u * first]; // token, slot, cell
  let base = (start.y * count + line) * p.width;
  let a = read_a(head, lane);
  var m = mat4x4<f32>();
  if (start.z > 0u) {
    for (var column = 0u; column < 4u; column++) {
      for (var i = 0u; i < 4u; i++) {
        let e = at_lane(lane, column, i);
        if (e < p.width) { m[column][i] = state[base + e]; }
      }
    }
  }
  for (var row = first; row <= last; row++) {
    let delta = softplus(dt[row * p.heads + head] + rates[head]);
    let value = x[row * count + line];
    let at = (row * p.groups + shared_by) * p.width;
    m = multiply_lanes(m, exp_lanes(delta * a)) + (delta * value) * read_b(at, lane);
    let sums = sum_lanes(vec4<f32>(dot_lanes(m, read_c(at, lane)), 0.0, 0.0, 0.0), t, row);
    if (lane == 0u && own < count) { y[row * count + line] = sums.x + rates[p.heads + head] * value; }
  }
  if (own >= count) { return; }
  for (var column = 0u; column < 4u; column++) {
    for (var i = 0u; i < 4u; i++) {
      let e = at_lane(lane, column, i);
      if (e < p.width) { state[base + e] = m[column][i]; }
    }
  }
}

// shift_keys: rotates the cached keys of one slot, all by the same angles, for a context shift.
//
//   binding 0  keys   storage, read_write  f32 or f16 (slots, ctxLen, kvHeads · headDim)
//   binding 1  turn   storage, read        f32 (2, pairs): cosines, then sines
//   binding 2  p      uniform              Params
//   dispatch   (ceil(count · heads · pairs / 64), 1, 1), x folded into z beyond 65,535; 64 threads of UNIT pairs each
//   oracle     src/engine/program/rope.ts rotateHead; tolerance 1e-6 abs + 1e-6 rel, 1e-3 rel as f16
struct Params { first: u32, count: u32, heads: u32, head_dim: u32, pairs: u32, step: u32, apart: u32 }
@group(0) @binding(0) var<storage, read_write> keys: array<Unit>;
@group(0) @binding(1) var<storage, read> turn: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;
//#splice cache

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let index = (group.z * groups.x + group.x) * 64u + t;
  let i = index % p.pairs;
  let head = index / p.pairs;
  if (head >= p.count * p.heads) { return; }
  let a = (p.first * p.heads + head) * p.head_dim + i * p.step;
  let b = a + p.apart;
  if (p.step == UNIT && UNIT == 2u) { // both of a pair are in one unit
    let pair = unpack(keys[a / UNIT]);
    keys[a / UNIT] = pack(pair.x * turn[i] - pair.y * turn[p.pairs + i], pair.x * turn[p.pairs + i] + pair.y * turn[i]);
    return;
  }
  if (i % UNIT != 0u) { return; } // the thread before has this pair too
  let u = unpack(keys[a / UNIT]);
  let v = unpack(keys[b / UNIT]);
  let cosines = vec2<f32>(turn[i], turn[i + 1u]);
  let sines = vec2<f32>(turn[p.pairs + i], turn[p.pairs + i + 1u]);
  let first = u * cosines - v * sines;
  let second = u * sines + v * cosines;
  keys[a / UNIT] = pack(first.x, first.y);
  keys[b / UNIT] = pack(second.x, second.y);
}

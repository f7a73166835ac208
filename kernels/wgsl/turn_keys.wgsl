// turn_keys: rotates the cached keys of one slot, all by the same angles: what a context shift does to them.
//
//   binding 0  k      storage, read_write  f32 (slots, ctxLen, kvHeads · headDim)
//   binding 1  turn   storage, read        f32 (2, pairs): cosines, then sines
//   binding 2  p      uniform              Params
//   dispatch   (ceil(count · heads · pairs / 64), 1, 1), x folded into z beyond 65,535; 64 threads of one pair each
//   oracle     src/backend/rope.ts rotateHead; tolerance 1e-6 abs + 1e-6 rel
struct Params { first: u32, count: u32, heads: u32, head_dim: u32, pairs: u32, step: u32, apart: u32 }
@group(0) @binding(0) var<storage, read_write> k: array<f32>;
@group(0) @binding(1) var<storage, read> turn: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;

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
  let u = k[a];
  let v = k[b];
  k[a] = u * turn[i] - v * turn[p.pairs + i];
  k[b] = u * turn[p.pairs + i] + v * turn[i];
}

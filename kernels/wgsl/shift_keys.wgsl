// shift_keys: rotates the cached keys of one slot, all by the same angles, for a context shift. One head of a position
// per workgroup.
//
//   binding 0  keys   storage, read_write  see store_kv (slots, ctxLen, kvHeads · headDim)
//   binding 1  turn   storage, read        f32 (2, pairs): cosines, then sines
//   binding 2  p      uniform              Params
//   dispatch   (count · heads, 1, 1), x folded into z beyond 65,535; 64 threads of UNIT values; headDim at most 640
//   oracle     src/engine/program/rope.ts rotateHead; tolerance 1e-6 abs + 1e-6 rel, 1e-3 rel as f16, 2e-2 of a head's
//              largest value as q8_0
struct Params { first: u32, count: u32, heads: u32, head_dim: u32, skip: u32, pairs: u32, step: u32, apart: u32 }
@group(0) @binding(0) var<storage, read_write> keys: array<Unit>;
@group(0) @binding(1) var<storage, read> turn: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;
//#splice cache
const WG: u32 = 64u;
//#splice rotate
var<workgroup> head: array<f32, 640>;

/// Value i of the head, rotated by the angles.
fn turned(i: u32) -> f32 {
  if (i >= 2u * p.pairs) { return head[i]; }
  let upper = (i / p.apart) % 2u == 1u;
  let pair = select(i / 2u, i % p.pairs, p.step == 1u);
  let other = head[select(i + p.apart, i - p.apart, upper)];
  return head[i] * turn[pair] + select(-other, other, upper) * turn[p.pairs + pair];
}

@compute @workgroup_size(64)
fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  let index = group.z * groups.x + group.x;
  if (index >= p.count * p.heads) { return; }
  let at = (p.first * p.heads + index) * p.head_dim / UNIT * WORDS;
  for (var i = t * UNIT; i < p.head_dim; i += WG * UNIT) {
    var words: array<Unit, WORDS>;
    for (var j = 0u; j < WORDS; j++) { words[j] = keys[at + i / UNIT * WORDS + j]; }
    var unit = unpack(words);
    for (var j = 0u; j < UNIT; j++) { rotating[i + j] = unit[j]; }
  }
  let block = rotated_block(p.head_dim, p.skip);
  rotate(p.head_dim, block, t);
  for (var i = t; i < p.head_dim; i += WG) { head[i] = rotating[i] * rotation_factor(block); }
  workgroupBarrier();
  for (var i = t; i < p.head_dim; i += WG) { rotating[i] = turned(i); }
  rotate(p.head_dim, block, t);
  for (var i = t * UNIT; i < p.head_dim; i += WG * UNIT) {
    var unit: array<f32, UNIT>;
    for (var j = 0u; j < UNIT; j++) { unit[j] = rotating[i + j] * rotation_factor(block); }
    var words = pack(unit);
    for (var j = 0u; j < WORDS; j++) { keys[at + i / UNIT * WORDS + j] = words[j]; }
  }
}

// store_kv: writes the keys and values of the rows to the cache, by slot and position.
//
//   binding 0  k      storage, read        f32 (rows, heads · head_dim)
//   binding 1  v      storage, read        f32 (rows, heads · value_dim)
//   binding 2  keys   storage, read_write  cached (slots, ctxLen, heads · head_dim)
//   binding 3  values storage, read_write  cached (slots, ctxLen, heads · value_dim)
//   binding 4  batch  storage, read        see batch.ts
//   binding 5  p      uniform              Params
//   dispatch   (heads, rows, 1), 64 threads each; head_dim and value_dim at most 640 where heads are rotated
//   oracle     src/engine/backends/cpu/ops.ts attention; tolerance 0 as f32, 5e-4 rel as f16
struct Params {
  heads: u32,
  head_dim: u32,
  value_dim: u32, // 0: values are parts of keys
  value_skip: u32, // values of a key before its value
  ctx_len: u32,
}
@group(0) @binding(0) var<storage, read> k: array<f32>;
@group(0) @binding(1) var<storage, read> v: array<f32>;
@group(0) @binding(2) var<storage, read_write> keys: array<Unit>;
@group(0) @binding(3) var<storage, read_write> values: array<Unit>;
@group(0) @binding(4) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(5) var<uniform> p: Params;
const WG: u32 = 64u;
//#splice cache
//#splice rotate

/// Value i of a head that begins at `at`.
fn given(is_key: bool, at: u32, i: u32) -> f32 {
  if (is_key) { return k[at + i]; }
  return v[at + i];
}

/// Packs the unit from value `i` on of a head that begins at `at`, or that lies in `rotating`.
fn packed(is_key: bool, at: u32, i: u32, factor: f32) -> array<Unit, WORDS> {
  var unit: array<f32, UNIT>;
  for (var j = 0u; j < UNIT; j++) {
    if (ROTATES) { unit[j] = rotating[i + j] * factor; } else { unit[j] = given(is_key, at, i + j); }
  }
  return pack(unit);
}

/// Rotates a head that begins at `at`.
fn rotate_given(is_key: bool, at: u32, dim: u32, block: u32, t: u32) {
  if (!ROTATES) { return; }
  workgroupBarrier();
  for (var i = t; i < dim; i += WG) { rotating[i] = given(is_key, at, i); }
  rotate(dim, block, t);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = batch[1u + 3u * group.y];
  let head = (row.y * p.ctx_len + row.z) * p.heads + group.x;
  let given_head = group.y * p.heads + group.x;
  let key_block = rotated_block(p.head_dim, p.value_skip);
  rotate_given(true, given_head * p.head_dim, p.head_dim, key_block, t);
  for (var i = t * UNIT; i < p.head_dim; i += WG * UNIT) {
    var words = packed(true, given_head * p.head_dim, i, rotation_factor(key_block));
    let to = (head * p.head_dim + i) / UNIT * WORDS;
    for (var j = 0u; j < WORDS; j++) { keys[to + j] = words[j]; }
  }
  if (p.value_dim == 0u) { return; }
  let block = rotated_block(p.value_dim, 0u);
  rotate_given(false, given_head * p.value_dim, p.value_dim, block, t);
  for (var i = t * UNIT; i < p.value_dim; i += WG * UNIT) {
    var words = packed(false, given_head * p.value_dim, i, rotation_factor(block));
    let to = (head * p.value_dim + i) / UNIT * WORDS;
    for (var j = 0u; j < WORDS; j++) { values[to + j] = words[j]; }
  }
}

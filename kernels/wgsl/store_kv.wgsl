// store_kv: writes the keys and values of the rows to the cache, by slot and position.
//
//   binding 0  k      storage, read        f32 (rows, dim)
//   binding 1  v      storage, read        f32 (rows, value_dim)
//   binding 2  keys   storage, read_write  cached (slots, ctxLen, dim)
//   binding 3  values storage, read_write  cached (slots, ctxLen, value_dim)
//   binding 4  batch  storage, read        see batch.ts
//   binding 5  p      uniform              Params
//   dispatch   (ceil(max(dim, value_dim) / 64), rows, 1), 64 threads of UNIT values each
//   oracle     src/engine/backends/cpu/ops.ts attention; tolerance 0 as f32, 5e-4 rel as f16
struct Params {
  dim: u32,
  value_dim: u32, // 0: values are parts of keys
  ctx_len: u32,
}
@group(0) @binding(0) var<storage, read> k: array<f32>;
@group(0) @binding(1) var<storage, read> v: array<f32>;
@group(0) @binding(2) var<storage, read_write> keys: array<Unit>;
@group(0) @binding(3) var<storage, read_write> values: array<Unit>;
@group(0) @binding(4) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(5) var<uniform> p: Params;

//#splice cache

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x * UNIT;
  let row = batch[1u + 3u * id.y];
  let place = row.y * p.ctx_len + row.z;
  if (i < p.dim) {
    var unit: array<f32, UNIT>;
    for (var j = 0u; j < UNIT; j++) { unit[j] = k[id.y * p.dim + i + j]; }
    var words = pack(unit);
    let to = (place * p.dim + i) / UNIT * WORDS;
    for (var j = 0u; j < WORDS; j++) { keys[to + j] = words[j]; }
  }
  if (i < p.value_dim) {
    var unit: array<f32, UNIT>;
    for (var j = 0u; j < UNIT; j++) { unit[j] = v[id.y * p.value_dim + i + j]; }
    var words = pack(unit);
    let to = (place * p.value_dim + i) / UNIT * WORDS;
    for (var j = 0u; j < WORDS; j++) { values[to + j] = words[j]; }
  }
}

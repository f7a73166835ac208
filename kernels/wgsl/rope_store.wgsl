// rope_store: rotates the queries in place, and puts the rotated keys and the values into the cache.
//
//   binding 0  q      storage, read_write  f32 (rows, heads · head_dim)
//   binding 1  k      storage, read        f32 (rows, kv_heads · head_dim)
//   binding 2  v      storage, read        f32 (rows, kv_heads · head_dim)
//   binding 3  cosine storage, read        f32 (positions, pairs), magnitude included
//   binding 4  sine   storage, read        f32 (positions, pairs), magnitude included
//   binding 5  keys   storage, read_write  f32 (slots, ctx_len, kv_heads · head_dim)
//   binding 6  values storage, read_write  f32 (slots, ctx_len, kv_heads · head_dim)
//   binding 7  batch  storage, read        see batch.ts
//   binding 8  p      uniform              Params
//   dispatch   (ceil((heads · pairs + 2 · kv_heads · head_dim) / 64), rows, 1), 64 threads of one pair or value each
//   oracle     src/backend/cpu/ops.ts rope and attention; tolerance 1e-6 abs + 1e-6 rel
struct Params { heads: u32, kv_heads: u32, head_dim: u32, pairs: u32, step: u32, apart: u32, ctx_len: u32 }
@group(0) @binding(0) var<storage, read_write> q: array<f32>;
@group(0) @binding(1) var<storage, read> k: array<f32>;
@group(0) @binding(2) var<storage, read> v: array<f32>;
@group(0) @binding(3) var<storage, read> cosine: array<f32>;
@group(0) @binding(4) var<storage, read> sine: array<f32>;
@group(0) @binding(5) var<storage, read_write> keys: array<f32>;
@group(0) @binding(6) var<storage, read_write> values: array<f32>;
@group(0) @binding(7) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(8) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let row = batch[1u + 2u * id.y];
  let turns = row.z * p.pairs;
  let queries = p.heads * p.pairs;
  if (id.x < queries) {
    let i = id.x % p.pairs;
    let a = (id.y * p.heads + id.x / p.pairs) * p.head_dim + i * p.step;
    let b = a + p.apart;
    let left = q[a];
    let right = q[b];
    q[a] = left * cosine[turns + i] - right * sine[turns + i];
    q[b] = left * sine[turns + i] + right * cosine[turns + i];
    return;
  }
  let dim = p.kv_heads * p.head_dim;
  let rest = id.x - queries;
  if (rest >= 2u * dim) { return; }
  let at = rest % dim;
  let source = id.y * dim + at;
  let target_at = (row.y * p.ctx_len + row.z) * dim + at;
  if (rest >= dim) {
    values[target_at] = v[source];
    return;
  }
  // A value's place in its head: (pair, which of the two), or beyond those that rotate.
  let place = at % p.head_dim;
  if (place >= 2u * p.pairs) {
    keys[target_at] = k[source];
    return;
  }
  let upper = (place / p.apart) % 2u;
  let i = select(place / 2u, place % p.pairs, p.step == 1u);
  let other = k[select(source + p.apart, source - p.apart, upper == 1u)];
  let turned = select(-other, other, upper == 1u) * sine[turns + i];
  keys[target_at] = k[source] * cosine[turns + i] + turned;
}

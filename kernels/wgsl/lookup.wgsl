// lookup: y[r] = values[token[r]]; a row given as a vector counts as token 0.
//
//   binding 0  values storage, read        f32 (tokens, dim)
//   binding 1  batch  storage, read        see batch.ts
//   binding 2  y      storage, read_write  f32 (rows, dim)
//   binding 3  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts lookup; tolerance 0
struct Params { dim: u32, tokens: u32 }
@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  let token = batch[1u + 3u * id.y].x;
  y[id.y * p.dim + id.x] = values[select(0u, token, token < p.tokens) * p.dim + id.x];
}

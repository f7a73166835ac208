// position_scale: x[r] *= 1 + coef · ln(floor((position + offset) / floor_scale) + 1).
//
//   binding 0  x      storage, read_write  f32 (rows, dim)
//   binding 1  batch  storage, read        see batch.ts
//   binding 2  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts positionScale; tolerance 3e-6 rel
struct Params { dim: u32, coef: f32, floor_scale: f32, offset: f32 }
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  let position = f32(batch[3u + 3u * id.y].x);
  x[id.y * p.dim + id.x] *= 1.0 + p.coef * log(floor((position + p.offset) / p.floor_scale) + 1.0);
}

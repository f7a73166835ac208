// scale: x *= by.
//
//   binding 0  x      storage, read_write  f32 (rows, dim)
//   binding 1  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts scale; tolerance 1e-7 rel
struct Params { dim: u32, by: f32 }
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  x[id.y * p.dim + id.x] *= p.by;
}

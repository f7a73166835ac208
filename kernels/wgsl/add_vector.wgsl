// add_vector: x[r] += w.
//
//   binding 0  x      storage, read_write  f32 (rows, dim)
//   binding 1  w      storage, read        f32 (dim)
//   binding 2  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts addVector; tolerance 1e-6 rel
struct Params { dim: u32 }
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  x[id.y * p.dim + id.x] += w[id.x];
}

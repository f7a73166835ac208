// add: y = a + b · scale.
//
//   binding 0  a      storage, read        f32 (rows, dim)
//   binding 1  b      storage, read        f32 (rows, dim)
//   binding 2  y      storage, read_write  f32 (rows, dim)
//   binding 3  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts add; tolerance 1e-6 abs + 1e-6 rel
struct Params { dim: u32, scale: f32 }
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  let at = id.y * p.dim + id.x;
  y[at] = a[at] + b[at] * p.scale;
}

// multiply: y = a ⊙ act(b); if b is narrower, each of its values is multiplied by several neighbours in a.
//
//   binding 0  a      storage, read        f32 (rows, dim)
//   binding 1  b      storage, read        f32 (rows, narrow)
//   binding 2  y      storage, read_write  f32 (rows, dim)
//   binding 3  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts multiply; tolerance 1e-6 abs + 1e-5 rel
struct Params { dim: u32, narrow: u32, kind: u32 }
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;
//#splice activation

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  let at = id.y * p.dim + id.x;
  y[at] = a[at] * activate(p.kind, b[id.y * p.narrow + id.x / (p.dim / p.narrow)]);
}

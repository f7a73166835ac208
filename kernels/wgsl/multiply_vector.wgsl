// multiply_vector: x ⊙= w, or x divided by w; each value of w applies to several neighbours in x.
//
//   binding 0  x      storage, read_write  f32 (rows, dim)
//   binding 1  w      storage, read        f32 (len)
//   binding 2  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts multiplyVector; tolerance 1e-6 rel
struct Params { dim: u32, len: u32, divide: u32 }
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  let at = id.y * p.dim + id.x;
  let value = w[id.x / (p.dim / p.len)];
  if (p.divide == 1u) { x[at] /= value; } else { x[at] *= value; }
}

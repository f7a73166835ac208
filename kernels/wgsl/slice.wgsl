// slice: y = `length` values from `first` on of each part of `part` values of x's rows.
//
//   binding 0  x      storage, read        f32 (rows, dim / length · part)
//   binding 1  y      storage, read_write  f32 (rows, dim)
//   binding 2  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts slice; tolerance 0
struct Params { dim: u32, length: u32, part: u32, first: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  let head = id.y * (p.dim / p.length) + id.x / p.length;
  y[id.y * p.dim + id.x] = x[head * p.part + p.first + id.x % p.length];
}

// join: y = the rows of a and b by parts: `first` values of a, then `second` of b, and so on.
//
//   binding 0  a      storage, read        f32 (rows, dim / (first + second) · first)
//   binding 1  b      storage, read        f32 (rows, dim / (first + second) · second)
//   binding 2  y      storage, read_write  f32 (rows, dim)
//   binding 3  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts join; tolerance 0
struct Params { dim: u32, first: u32, second: u32 }
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  let both = p.first + p.second;
  let head = id.y * (p.dim / both) + id.x / both;
  let i = id.x % both;
  let at = id.y * p.dim + id.x;
  if (i < p.first) { y[at] = a[head * p.first + i]; } else { y[at] = b[head * p.second + i - p.first]; }
}

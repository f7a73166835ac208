// rotate_heads: y = each head of x times the Hadamard matrices of its blocks, for queries on rotated keys and sums of
// rotated values.
//
//   binding 0  x storage, read        f32 (rows, heads · dim)
//   binding 1  y storage, read_write  as x
//   binding 2  p uniform              Params
//   dispatch   (heads, rows, 1), 64 threads each; dim at most 640
//   oracle     the definition; tolerance 2e-6 of a head's largest value
struct Params {
  heads: u32,
  dim: u32,
  skip: u32, // values of a key before its value; else 0
}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;
const WG: u32 = 64u;
//#splice rotation
//#splice rotate

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let at = (group.y * p.heads + group.x) * p.dim;
  let block = rotated_block(p.dim, p.skip);
  for (var i = t; i < p.dim; i += WG) { rotating[i] = x[at + i]; }
  rotate(p.dim, block, t);
  for (var i = t; i < p.dim; i += WG) { y[at + i] = rotating[i] * rotation_factor(block); }
}

// moe_sum: y[r] = Σ share[r, j] · x[r, j] over the experts of each row, or without shares.
//
//   binding 0  x      storage, read        f32 (rows, used, dim)
//   binding 1  choices storage, read       u32 (rows, used, 2): expert, and its share as bits of a float
//   binding 2  y      storage, read_write  f32 (rows, dim)
//   binding 3  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts moe; tolerance 1e-6 abs + 1e-6 rel
struct Params { dim: u32, used: u32, weighs: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> choices: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  var sum = 0.0;
  for (var j = 0u; j < p.used; j++) {
    let i = id.y * p.used + j;
    sum += select(1.0, bitcast<f32>(choices[i].y), p.weighs == 1u) * x[i * p.dim + id.x];
  }
  y[id.y * p.dim + id.x] = sum;
}

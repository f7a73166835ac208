// moe_weigh: y[i] = share[i] · x[i / used] for each choice i of an expert: experts whose inputs are weighted.
//
//   binding 0  x       storage, read        f32 (rows, dim)
//   binding 1  choices storage, read        u32 (rows, used, 2): expert, and its share as bits of a float
//   binding 2  y       storage, read_write  f32 (rows, used, dim)
//   binding 3  p       uniform              Params
//   dispatch   (ceil(dim / 64), rows · used, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/moe.ts weighed; tolerance 1e-6 rel
struct Params { dim: u32, used: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> choices: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  y[id.y * p.dim + id.x] = x[(id.y / p.used) * p.dim + id.x] * bitcast<f32>(choices[id.y].y);
}

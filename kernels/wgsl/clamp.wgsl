// clamp: x = min(max(x, least), most).
//
//   binding 0  x      storage, read_write  f32 (rows, dim)
//   binding 1  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts clamp; tolerance 0
struct Params { dim: u32, least: f32, most: f32 }
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  let at = id.y * p.dim + id.x;
  x[at] = min(max(x[at], p.least), p.most);
}

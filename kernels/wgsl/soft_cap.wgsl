// soft_cap: x = cap · tanh(x / cap). tanh of large numbers is NaN on some devices: beyond 15 it is 1 in float32.
//
//   binding 0  x      storage, read_write  f32 (rows, dim)
//   binding 1  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts softCap; tolerance 1e-5 abs + 1e-5 rel
struct Params { dim: u32, cap: f32 }
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  let at = id.y * p.dim + id.x;
  x[at] = p.cap * tanh(clamp(x[at] / p.cap, -15.0, 15.0));
}

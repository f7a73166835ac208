// give: y[r] = a part of the row's given vector, or y[r] += that; rows with an id stay unchanged.
//
//   binding 0  given  storage, read        f32 (rows without an id, given_dim)
//   binding 1  batch  storage, read        see batch.ts
//   binding 2  y      storage, read_write  f32 (rows, dim)
//   binding 3  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts embed, addGiven; tolerance 0
struct Params {
  dim: u32,
  given_dim: u32,
  at: u32, // the first value of the part
  adds: u32, // 0: y = , 1: y +=
}
@group(0) @binding(0) var<storage, read> given: array<f32>;
@group(0) @binding(1) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let token = batch[1u + 3u * id.y].x;
  if (id.x >= p.dim || token < 0x80000000u) { return; }
  let at = id.y * p.dim + id.x;
  let value = given[~token * p.given_dim + p.at + id.x];
  y[at] = value + select(0.0, y[at], p.adds == 1u);
}

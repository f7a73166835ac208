// keep_remembering: x[r] = 0 for rows without a memory.
//
//   binding 0  x      storage, read_write  f32 (rows, dim)
//   binding 1  batch  storage, read        see batch.ts; the cell of a row is the last row of its memory, or −1
//   binding 2  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/memory.ts keepRemembering; tolerance 0
struct Params { dim: u32 }
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim || batch[1u + 3u * id.y].z != 0xffffffffu) { return; }
  x[id.y * p.dim + id.x] = 0.0;
}

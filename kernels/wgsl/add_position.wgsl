// add_position: x[r] += table[position[r]] · scale, where the position's row lies in this piece of the table.
//
//   binding 0  w      storage, read        raw blocks, rows of row_bytes
//   binding 1  batch  storage, read        see batch.ts
//   binding 2  x      storage, read_write  f32 (rows, dim)
//   binding 3  p      uniform              Params
//   dispatch   (ceil(dim / 8 / 64), rows, 1), 64 threads of eight values each
//   oracle     src/engine/backends/cpu/ops.ts addPosition; tolerance 1e-6 rel
struct Params { dim: u32, first: u32, count: u32, row_start: u32, row_bytes: u32, scale: f32 }
@group(0) @binding(0) var<storage, read> w: array<u32>;
@group(0) @binding(1) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> x: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;
//#splice quant

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x * 8u;
  let row = batch[3u + 3u * id.y].x + p.row_start;
  if (i >= p.dim || row < p.first || row - p.first >= p.count) { return; }
  let eight = dequant8((row - p.first) * p.row_bytes + (i / BLOCK_LEN) * BLOCK_BYTES, i % BLOCK_LEN);
  let at = id.y * p.dim + i;
  for (var j = 0u; j < 4u; j++) {
    if (i + j < p.dim) { x[at + j] += eight.lo[j] * p.scale; }
    if (i + 4u + j < p.dim) { x[at + 4u + j] += eight.hi[j] * p.scale; }
  }
}

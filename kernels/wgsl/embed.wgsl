// embed: y[r] = table[token[r]] · scale, where the token's row lies in this piece of the table. A row given as a vector
// gets that of `given_token`, or stays. With `by_row`, y[r] = table[r] · scale.
//
//   binding 0  w      storage, read        raw blocks, rows of row_bytes
//   binding 1  batch  storage, read        see batch.ts
//   binding 2  y      storage, read_write  f32 (rows, dim)
//   binding 3  p      uniform              Params
//   dispatch   (ceil(dim / 8 / 64), rows, 1), 64 threads of eight values each
//   oracle     src/engine/backends/cpu/ops.ts embed; tolerance 1e-6 rel
struct Params {
  dim: u32,
  first: u32,
  count: u32,
  row_start: u32,
  row_bytes: u32,
  scale: f32,
  given_token: u32, // NONE: rows given as vectors stay unchanged
  by_row: u32, // 0 or 1
}
@group(0) @binding(0) var<storage, read> w: array<u32>;
@group(0) @binding(1) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;
const NONE: u32 = 0xffffffffu;
//#splice quant

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x * 8u;
  var token = batch[1u + 3u * id.y].x;
  if (token >= 0x80000000u) { token = p.given_token; }
  if (p.by_row != 0u) { token = id.y; }
  let row = token + p.row_start;
  if (i >= p.dim || token == NONE || row < p.first || row - p.first >= p.count) { return; }
  let eight = dequant8((row - p.first) * p.row_bytes + (i / BLOCK_LEN) * BLOCK_BYTES, i % BLOCK_LEN);
  let at = id.y * p.dim + i;
  for (var j = 0u; j < 4u; j++) {
    if (i + j < p.dim) { y[at + j] = eight.lo[j] * p.scale; }
    if (i + 4u + j < p.dim) { y[at + 4u + j] = eight.hi[j] * p.scale; }
  }
}

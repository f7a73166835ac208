// head_transposed: y[r, h] = factor[h] · W[h]ᵀ · x[r, h], four rows of the run by one head's 512 values per workgroup.
//
//   binding 0  x       storage, read        f32 (rows, heads, out_dim)
//   binding 1  w       storage, read        raw blocks of heads first_head …, out_dim rows of row_bytes each
//   binding 2  factors storage, read        f32 (heads), read if has_factors
//   binding 3  batch   storage, read        see batch.ts
//   binding 4  y       storage, read_write  f32 (rows, heads, in_dim)
//   binding 5  p       uniform              Params
//   dispatch   (count · ceil(in_dim / 512), ceil(rows / 4), 1), 64 threads of eight values each
//   oracle     src/engine/backends/cpu/ops.ts headLinear; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  in_dim: u32,
  out_dim: u32,
  heads: u32,
  first_head: u32,
  head_rows: u32,
  row_start: u32,
  row_bytes: u32,
  has_factors: u32,
  wanted: u32, // 1 if the rows are the wanted ones
}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> w: array<u32>;
@group(0) @binding(2) var<storage, read> factors: array<f32>;
@group(0) @binding(3) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<uniform> p: Params;
const WG: u32 = 64u;
const ROWS: u32 = 4u;
const DEPTH: u32 = 256u;
var<workgroup> part: array<vec4<f32>, DEPTH>; // values of x, one row per lane
//#splice quant

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let columns = (p.in_dim + 511u) / 512u;
  let within = group.x / columns;
  let head = p.first_head + within;
  let i = (group.x % columns * WG + t) * 8u;
  let first = group.y * ROWS;
  let rows = min(ROWS, select(batch[0].x, batch[0].y, p.wanted == 1u) - first);
  var low = mat4x4<f32>(); // a column per row
  var high = mat4x4<f32>();
  for (var begin = 0u; begin < p.out_dim; begin += DEPTH) {
    let end = min(p.out_dim, begin + DEPTH);
    for (var o = begin + t; o < end; o += WG) {
      var four = vec4<f32>();
      for (var r = 0u; r < rows; r++) { four[r] = x[((first + r) * p.heads + head) * p.out_dim + o]; }
      part[o - begin] = four;
    }
    workgroupBarrier();
    for (var o = begin; o < select(begin, end, i < p.in_dim); o++) {
      let row = (within * p.head_rows + p.row_start + o) * p.row_bytes;
      let eight = dequant8(row + (i / BLOCK_LEN) * BLOCK_BYTES, i % BLOCK_LEN);
      let four = part[o - begin];
      low += mat4x4<f32>(eight.lo * four.x, eight.lo * four.y, eight.lo * four.z, eight.lo * four.w);
      high += mat4x4<f32>(eight.hi * four.x, eight.hi * four.y, eight.hi * four.z, eight.hi * four.w);
    }
    workgroupBarrier();
  }
  let factor = select(1.0, factors[head * p.has_factors], p.has_factors == 1u);
  for (var r = 0u; r < rows; r++) {
    let at = ((first + r) * p.heads + head) * p.in_dim + i;
    for (var j = 0u; j < 4u; j++) {
      if (i + j < p.in_dim) { y[at + j] = low[r][j] * factor; }
      if (i + 4u + j < p.in_dim) { y[at + 4u + j] = high[r][j] * factor; }
    }
  }
}

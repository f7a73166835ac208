// tile: the common part of the two ways of multiplying many rows, spliced into their kernels before `tile_floats` or
// `tile_matrix`. A kernel defines ROWS, 32, 64 or 128, and the row of x at a place: fn x_row_of(place: u32) -> u32.
const COLUMNS: u32 = 64u; // tuned: tileColumns
const DEPTH: u32 = 32u;
/// Threads of a workgroup, and threads per row of threads.
const WG: u32 = ROWS / 4u * THREAD_COLUMNS;
const THREAD_COLUMNS: u32 = COLUMNS / 8u;
/// Tiles in workgroup memory: with two, the next is loaded while this one is multiplied.
const BUFFERS: u32 = 1u; // tuned: double

/// Four rows by four columns, and by the next four.
struct Tile { low: mat4x4<f32>, high: mat4x4<f32> }

/// Eight weights of a column from `i`, zeros beyond the matrix, whose first of `count` rows is `w_row`.
fn w_eight(w_row: u32, count: u32, column: u32, i: u32) -> Eight {
  var eight = Eight(vec4<f32>(), vec4<f32>());
  if (column >= count || i >= p.in_dim) { return eight; }
  eight = dequant8((w_row + column) * p.row_bytes + (i / BLOCK_LEN) * BLOCK_BYTES, i % BLOCK_LEN);
  if (i + 8u <= p.in_dim) { return eight; }
  for (var j = 0u; j < 4u; j++) {
    if (i + j >= p.in_dim) { eight.lo[j] = 0.0; }
    if (i + 4u + j >= p.in_dim) { eight.hi[j] = 0.0; }
  }
  return eight;
}

/// The first of four rows of the tile, and of eight columns, that a thread sums.
fn row_in_tile(t: u32) -> u32 {
  return (t / THREAD_COLUMNS) * 4u;
}
fn column_in_tile(t: u32) -> u32 {
  return (t % THREAD_COLUMNS) * 8u;
}

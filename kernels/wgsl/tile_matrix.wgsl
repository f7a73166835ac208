// tile_matrix: what `tile_floats` computes, by subgroup matrices with float32 sums, spliced after `tile_halves` or
// `tile_singles`, which say what is in the matrices, and `matrices`. 32 values of each column and of each row at a time
// are in workgroup memory. Each subgroup sums 32 rows by WIDTH columns, at most COLUMNS. A row's sums do not depend on
// its place or on other rows.
/// Vectors of a row or column in workgroup memory, of which the last is unused: it keeps threads in different banks.
const STRIDE: u32 = DEPTH / PER + 1u;
/// Rows of results in workgroup memory at once.
const STRIP: u32 = 16u;
/// Numbers of matrices in a subgroup's sums: per strip, and across columns.
const DOWN: u32 = STRIP / M;
const ACROSS: u32 = WIDTH / N;
/// Number of subgroups across the columns.
const SUBGROUP_COLUMNS: u32 = COLUMNS / WIDTH;
const TILE_ROWS: u32 = ROWS * STRIDE;
const TILE_COLUMNS: u32 = COLUMNS * STRIDE;
var<workgroup> xs: array<Vector, BUFFERS * TILE_ROWS>; // (BUFFERS, ROWS, STRIDE)
var<workgroup> strip: array<vec4<f32>, STRIP * COLUMNS / 4u>; // (STRIP, COLUMNS / 4)

/// Loads the values of a tile into buffer `into`.
fn load(first_place: u32, end: u32, w_row: u32, count: u32, first_column: u32, depth: u32, into: u32, t: u32) {
  for (var e = t; e < ROWS * (DEPTH / PER); e += WG) {
    let row = e / (DEPTH / PER);
    let i = e % (DEPTH / PER);
    xs[into * TILE_ROWS + row * STRIDE + i] = x_vector(first_place + row, end, depth / PER + i);
  }
  for (var e = t; e < COLUMNS * (DEPTH / 8u); e += WG) {
    let column = e / (DEPTH / 8u);
    let i = e % (DEPTH / 8u);
    let eight = w_eight(w_row, count, first_column + column, depth + 8u * i);
    store_eight(into * TILE_COLUMNS + column * STRIDE + 8u / PER * i, eight);
  }
}

/// As in `tile_floats`.
fn tile_product(first_place: u32, end: u32, w_row: u32, count: u32, first_column: u32, thread: Thread) -> Tile {
  let t = thread.t;
  // Smaller subgroups than expected are more: those beyond the tile repeat its last rows.
  let block = min(thread.subgroup / SUBGROUP_COLUMNS, ROWS / 32u - 1u);
  let side = thread.subgroup % SUBGROUP_COLUMNS * WIDTH;
  var sums: array<array<Sums, ACROSS>, 2u * DOWN>;
  if (BUFFERS == 2u) { load(first_place, end, w_row, count, first_column, 0u, 0u, t); }
  for (var depth = 0u; depth < p.in_dim; depth += DEPTH) {
    let now = (depth / DEPTH) % BUFFERS;
    if (BUFFERS == 1u) { load(first_place, end, w_row, count, first_column, depth, 0u, t); }
    workgroupBarrier();
    if (BUFFERS == 2u && depth + DEPTH < p.in_dim) {
      load(first_place, end, w_row, count, first_column, depth + DEPTH, 1u - now, t);
    }
    for (var k = 0u; k < DEPTH; k += K) {
      let x_at = now * TILE_ROWS + 32u * block * STRIDE + k / PER;
      let w_at = now * TILE_COLUMNS + side * STRIDE + k / PER;
      var right: array<Right, ACROSS>;
      for (var j = 0u; j < ACROSS; j++) {
        right[j] = subgroupMatrixLoad<Right, col_major>(&ws, w_at + j * N * STRIDE, STRIDE);
      }
      for (var i = 0u; i < 2u * DOWN; i++) {
        let left = subgroupMatrixLoad<Left, row_major>(&xs, x_at + i * M * STRIDE, STRIDE);
        for (var j = 0u; j < ACROSS; j++) { sums[i][j] = subgroupMatrixMultiplyAccumulate(left, right[j], sums[i][j]); }
      }
    }
    if (BUFFERS == 1u) { workgroupBarrier(); }
  }
  // Strips of results pass through workgroup memory to the threads that store them.
  var tile = Tile(mat4x4<f32>(), mat4x4<f32>());
  for (var above = 0u; above < ROWS / 32u; above++) {
    for (var half = 0u; half < 2u; half++) {
      if (block == above) {
        for (var i = 0u; i < DOWN; i++) {
          for (var j = 0u; j < ACROSS; j++) {
            let at = (i * M * COLUMNS + side + j * N) / 4u;
            subgroupMatrixStore<row_major>(&strip, at, sums[half * DOWN + i][j], COLUMNS / 4u);
          }
        }
      }
      workgroupBarrier();
      if (row_in_tile(t) / STRIP == 2u * above + half) {
        for (var i = 0u; i < 4u; i++) {
          let at = ((row_in_tile(t) % STRIP + i) * COLUMNS + column_in_tile(t)) / 4u;
          let scale = scale_of(first_place + row_in_tile(t) + i, end);
          tile.low[i] = strip[at] * scale;
          tile.high[i] = strip[at + 1u] * scale;
        }
      }
      workgroupBarrier();
    }
  }
  return tile;
}

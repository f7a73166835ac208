// tile: products of ROWS rows of x with COLUMNS neighbouring rows of w, spliced into the kernels for many rows. 32
// weights of each column and 32 values of each row at a time are in workgroup memory, four columns or rows per vector;
// each thread sums four rows by eight columns in registers. A row's sums do not depend on its place or on other rows.
//
// A kernel defines ROWS, 32 or 64, and the row of x at a place: fn x_row_of(place: u32) -> u32. Weights may be stored
// as float16, which moves each by at most 1/2048 of itself, or 3e-8; values of x, which may exceed float16's range, and
// all sums stay float32.
const COLUMNS: u32 = 64u; // tuned: tileColumns
const DEPTH: u32 = 32u;
/// Columns and rows four at a time.
const COLUMN_FOURS: u32 = COLUMNS / 4u;
const ROW_FOURS: u32 = ROWS / 4u;
/// Threads of a workgroup, and threads per row of threads.
const WG: u32 = ROW_FOURS * THREAD_COLUMNS;
const THREAD_COLUMNS: u32 = COLUMNS / 8u;
/// Four weights in workgroup memory.
alias Stored = vec4<f32>;
var<workgroup> xs: array<vec4<f32>, DEPTH * ROW_FOURS>; // (DEPTH, ROWS / 4)
var<workgroup> ws: array<Stored, DEPTH * COLUMN_FOURS>; // (DEPTH, COLUMNS / 4)

/// Four rows by four columns, and by the next four.
struct Tile { low: mat4x4<f32>, high: mat4x4<f32> }

/// Four values from `i` of the row of x at a place, zeros beyond the row and from place `end` on.
fn x_four(place: u32, end: u32, i: u32) -> vec4<f32> {
  var four = vec4<f32>();
  if (place >= end) { return four; }
  let at = x_row_of(place) * p.in_dim + i;
  if (i + 4u <= p.in_dim) { return vec4<f32>(x[at], x[at + 1u], x[at + 2u], x[at + 3u]); }
  for (var j = 0u; j < 4u; j++) {
    if (i + j < p.in_dim) { four[j] = x[at + j]; }
  }
  return four;
}

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

fn load_x(first: u32, end: u32, depth: u32, t: u32) {
  for (var e = t; e < ROW_FOURS * (DEPTH / 4u); e += WG) {
    let group = e % ROW_FOURS;
    let place = first + group * 4u;
    let i = (e / ROW_FOURS) * 4u;
    var four = mat4x4<f32>();
    for (var j = 0u; j < 4u; j++) { four[j] = x_four(place + j, end, depth + i); }
    four = transpose(four);
    for (var j = 0u; j < 4u; j++) { xs[(i + j) * ROW_FOURS + group] = four[j]; }
  }
}

fn load_w(w_row: u32, count: u32, first: u32, depth: u32, t: u32) {
  for (var e = t; e < COLUMN_FOURS * (DEPTH / 8u); e += WG) {
    let group = e % COLUMN_FOURS;
    let column = first + group * 4u;
    let i = (e / COLUMN_FOURS) * 8u;
    var lo = mat4x4<f32>();
    var hi = mat4x4<f32>();
    for (var j = 0u; j < 4u; j++) {
      let eight = w_eight(w_row, count, column + j, depth + i);
      lo[j] = eight.lo;
      hi[j] = eight.hi;
    }
    lo = transpose(lo);
    hi = transpose(hi);
    for (var j = 0u; j < 4u; j++) {
      ws[(i + j) * COLUMN_FOURS + group] = Stored(lo[j]);
      ws[(i + 4u + j) * COLUMN_FOURS + group] = Stored(hi[j]);
    }
  }
}

/// The first of four rows of the tile, and of eight columns, that a thread sums.
fn row_in_tile(t: u32) -> u32 {
  return (t / THREAD_COLUMNS) * 4u;
}
fn column_in_tile(t: u32) -> u32 {
  return (t % THREAD_COLUMNS) * 8u;
}

/// The sums of thread t: of four places from first_place + row_in_tile(t), and of eight columns from first_column +
/// column_in_tile(t).
fn tile_product(first_place: u32, end: u32, w_row: u32, count: u32, first_column: u32, t: u32) -> Tile {
  let row = row_in_tile(t) / 4u;
  let column = column_in_tile(t) / 4u;
  var low = mat4x4<f32>();
  var high = mat4x4<f32>();
  let live = first_place + 4u * row < end && first_column + 4u * column < count; // otherwise no result is stored
  for (var depth = 0u; depth < p.in_dim; depth += DEPTH) {
    load_x(first_place, end, depth, t);
    load_w(w_row, count, first_column, depth, t);
    workgroupBarrier();
    if (live) {
      for (var k = 0u; k < DEPTH; k++) {
        let values = xs[k * ROW_FOURS + row];
        let left = vec4<f32>(ws[k * COLUMN_FOURS + column]);
        let right = vec4<f32>(ws[k * COLUMN_FOURS + column + 1u]);
        low[0] += values.x * left;
        low[1] += values.y * left;
        low[2] += values.z * left;
        low[3] += values.w * left;
        high[0] += values.x * right;
        high[1] += values.y * right;
        high[2] += values.z * right;
        high[3] += values.w * right;
      }
    }
    workgroupBarrier();
  }
  return Tile(low, high);
}

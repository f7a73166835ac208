// tile: sums of 32 rows of x with 64 neighbouring rows of w, spliced into the kernels for many rows. Thirty-two weights
// of each column and values of each row at a time lie in workgroup memory, four columns or rows to a vector; each
// thread sums four rows by eight columns in registers. A row's sums do not depend on its place or on other rows.
//
// A kernel says which row of x stands at each place: fn x_row_of(place: u32) -> u32.
const ROWS: u32 = 32u;
const COLUMNS: u32 = 64u;
const DEPTH: u32 = 32u;
var<workgroup> xs: array<vec4<f32>, 256>; // (DEPTH, ROWS / 4)
var<workgroup> ws: array<vec4<f32>, 512>; // (DEPTH, COLUMNS / 4)

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
  let group = t % 8u;
  let place = first + group * 4u;
  let i = (t / 8u) * 4u;
  var four = mat4x4<f32>();
  for (var j = 0u; j < 4u; j++) { four[j] = x_four(place + j, end, depth + i); }
  four = transpose(four);
  for (var j = 0u; j < 4u; j++) { xs[(i + j) * 8u + group] = four[j]; }
}

fn load_w(w_row: u32, count: u32, first: u32, depth: u32, t: u32) {
  let group = t % 16u;
  let column = first + group * 4u;
  let i = (t / 16u) * 8u;
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
    ws[(i + j) * 16u + group] = lo[j];
    ws[(i + 4u + j) * 16u + group] = hi[j];
  }
}

/// The sums of thread t: of the places first_place + t / 8 · 4 …, and of the columns first_column + t % 8 · 8 ….
fn tile_product(first_place: u32, end: u32, w_row: u32, count: u32, first_column: u32, t: u32) -> Tile {
  let row = t / 8u;
  let column = t % 8u;
  var low = mat4x4<f32>();
  var high = mat4x4<f32>();
  for (var depth = 0u; depth < p.in_dim; depth += DEPTH) {
    load_x(first_place, end, depth, t);
    load_w(w_row, count, first_column, depth, t);
    workgroupBarrier();
    for (var k = 0u; k < DEPTH; k++) {
      let values = xs[k * 8u + row];
      let left = ws[k * 16u + column * 2u];
      let right = ws[k * 16u + column * 2u + 1u];
      for (var j = 0u; j < 4u; j++) {
        low[j] += values[j] * left;
        high[j] += values[j] * right;
      }
    }
    workgroupBarrier();
  }
  return Tile(low, high);
}

// tile_floats: products of ROWS rows of x with COLUMNS neighbouring rows of w, spliced into the kernels for many rows
// after `tile`. 32 weights of each column and 32 values of each row at a time are in workgroup memory, four columns or
// rows per vector; each thread sums four rows by eight columns in registers. A row's sums do not depend on its place or
// on other rows.
//
// Weights may be stored as float16, which moves each by at most 1/2048 of itself, or 3e-8; values of x, which may
// exceed float16's range, and all sums stay float32.

/// A thread's built-in values.
struct Thread {
  @builtin(local_invocation_index) t: u32,
}
/// Columns and rows four at a time.
const COLUMN_FOURS: u32 = COLUMNS / 4u;
const ROW_FOURS: u32 = ROWS / 4u;
/// Four weights in workgroup memory.
alias Stored = vec4<f32>;
var<workgroup> xs: array<vec4<f32>, BUFFERS * DEPTH * ROW_FOURS>; // (BUFFERS, DEPTH, ROWS / 4)
var<workgroup> ws: array<Stored, BUFFERS * DEPTH * COLUMN_FOURS>; // (BUFFERS, DEPTH, COLUMNS / 4)

/// Loads the values of a tile into buffer `into`.
fn load_x(first: u32, end: u32, depth: u32, into: u32, t: u32) {
  for (var e = t; e < ROW_FOURS * (DEPTH / 4u); e += WG) {
    let group = e % ROW_FOURS;
    let place = first + group * 4u;
    let i = (e / ROW_FOURS) * 4u;
    var four = mat4x4<f32>();
    for (var j = 0u; j < 4u; j++) { four[j] = x_four(place + j, end, depth + i); }
    four = transpose(four);
    for (var j = 0u; j < 4u; j++) { xs[(into * DEPTH + i + j) * ROW_FOURS + group] = four[j]; }
  }
}

fn load_w(w_row: u32, count: u32, first: u32, depth: u32, into: u32, t: u32) {
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
      ws[(into * DEPTH + i + j) * COLUMN_FOURS + group] = Stored(lo[j]);
      ws[(into * DEPTH + i + 4u + j) * COLUMN_FOURS + group] = Stored(hi[j]);
    }
  }
}

/// Computes the sums of a thread: for four rows of the list from first_place + row_in_tile(t), and for eight columns
/// from first_column + column_in_tile(t).
fn tile_product(first_place: u32, end: u32, w_row: u32, count: u32, first_column: u32, thread: Thread) -> Tile {
  let t = thread.t;
  let row = row_in_tile(t) / 4u;
  let column = column_in_tile(t) / 4u;
  var low = mat4x4<f32>();
  var high = mat4x4<f32>();
  let live = first_place + 4u * row < end && first_column + 4u * column < count; // otherwise no result is stored
  if (BUFFERS == 2u) {
    load_x(first_place, end, 0u, 0u, t);
    load_w(w_row, count, first_column, 0u, 0u, t);
  }
  for (var depth = 0u; depth < p.in_dim; depth += DEPTH) {
    let now = (depth / DEPTH) % BUFFERS;
    if (BUFFERS == 1u) {
      load_x(first_place, end, depth, 0u, t);
      load_w(w_row, count, first_column, depth, 0u, t);
    }
    workgroupBarrier();
    if (BUFFERS == 2u && depth + DEPTH < p.in_dim) {
      load_x(first_place, end, depth + DEPTH, 1u - now, t);
      load_w(w_row, count, first_column, depth + DEPTH, 1u - now, t);
    }
    if (live) {
      for (var k = now * DEPTH; k < (now + 1u) * DEPTH; k++) {
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
    if (BUFFERS == 1u) { workgroupBarrier(); }
  }
  return Tile(low, high);
}

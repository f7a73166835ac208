// attention_tile: one head of 32 neighbouring rows over their whole context, by online softmax over tiles of 64 keys
// (arXiv:2307.08691): a key is read once for all rows. A workgroup makes up to 256 values of each row. Rows of several
// sequences in one tile are processed one sequence after another. Tiles begin at multiples of 64, so that a row has
// the same bits in every chunk.
//
//   binding 0  q      storage, read        f32 (rows, heads · head_dim)
//   binding 1  keys   storage, read        cached (slots, ctx_len, kv_heads · head_dim); ctx_len 0: (rows, …)
//   binding 2  values storage, read        cached (slots, ctx_len, value_row) or (rows, value_row)
//   binding 3  batch  storage, read        see batch.ts
//   binding 4  extras storage, read        f32, as in attention; biases (heads, 2 · far + 1) from has_biases − 1 on
//   binding 5  y      storage, read_write  f32 (rows, heads · value_dim)
//   binding 6  p      uniform              Params
//   dispatch   (heads · ceil(value_dim / 256), ceil(rows / 32), 1), 128 threads each
//   oracle     src/engine/backends/cpu/ops.ts attention, bidirectionalAttention; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  heads: u32,
  kv_heads: u32,
  head_dim: u32,
  value_dim: u32,
  value_row: u32, // values of a position
  value_skip: u32, // index of the first value that is read in a head
  ctx_len: u32, // 0: no cache; a row attends to the rows of its sequence in this run
  window: u32, // without a cache: half of it in each direction
  chunked: u32, // 1: the window cuts positions into chunks
  scale: f32,
  soft_cap: f32,
  spans: u32, // 1: a row attends to all of its span, and without a cache to nothing else
  has_sinks: u32, // 0, or their offset in `extras` plus one
  has_slopes: u32, // the same
  has_biases: u32, // the same: biases of scores by distance, from −far to far
  far: u32,
}
@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> keys: array<Four>;
@group(0) @binding(2) var<storage, read> values: array<Four>;
@group(0) @binding(3) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> extras: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<uniform> p: Params;
const WG: u32 = 128u;
const ROWS: u32 = 32u;
const KEYS: u32 = 64u;
var<workgroup> queries: array<vec4<f32>, 288>; // (ROWS, STRIDE)
var<workgroup> tile: array<vec4<f32>, 576>; // (KEYS, STRIDE) of keys, then shares (KEYS, ROWS / 4)
var<workgroup> peaks: array<vec4<f32>, 128>; // (ROWS / 4, 16)
//#splice cache
//#splice heads
//#splice products
//#splice reach

/// Loads a part of the queries and keys into workgroup memory, zeros beyond their ends.
fn load(first: u32, last: u32, head: u32, key_at: u32, count: u32, depth: u32, t: u32) {
  let d = t % DEPTH;
  let i = 4u * (depth + d);
  let inside = i < p.head_dim;
  for (var r = t / DEPTH; r < ROWS; r += WG / DEPTH) {
    var four = vec4<f32>();
    if (inside && first + r < last) { four = query_four(((first + r) * p.heads + head) * p.head_dim, i); }
    queries[r * STRIDE + d] = four;
  }
  for (var k = t / DEPTH; k < KEYS; k += WG / DEPTH) {
    var four = vec4<f32>();
    if (inside && k < count) { four = key_four(key_at + k * p.kv_heads * p.head_dim, i); }
    tile[k * STRIDE + d] = four;
  }
}

/// The parts of scores that depend on the distance of a head's key from each row, if there are any.
fn biases_of(head: u32, own: vec4<f32>, key: u32) -> vec4<f32> {
  if (p.has_biases == 0u) { return vec4<f32>(); }
  let far = i32(p.far);
  let at = vec4<u32>(clamp(vec4<i32>(i32(key)) - vec4<i32>(own), vec4<i32>(-far), vec4<i32>(far)) + far)
    + (p.has_biases - 1u + head * (2u * p.far + 1u));
  return vec4<f32>(extras[at.x], extras[at.y], extras[at.z], extras[at.w]);
}

/// The rows of a thread, by lane: their range of the current sequence, their maximum score and total so far.
struct Rows { start: vec4<u32>, to: vec4<u32>, own: vec4<f32>, most: vec4<f32>, total: vec4<f32> }

/// Converts scores to shares, which replace keys in the tile. Earlier sums must be multiplied by the result.
/// @param live true if one of the thread's rows is of the current sequence
fn share_tile(
  scores: mat4x4<f32>,
  rows: ptr<function, Rows>,
  slope: f32,
  head: u32,
  first_key: u32,
  t: u32,
  live: bool,
) -> vec4<f32> {
  let quad = t / 16u;
  let k = t % 16u;
  var masked = array<vec4<f32>, 4>();
  if (live) {
    var part = vec4<f32>(FLOOR);
    for (var j = 0u; j < 4u; j++) {
      let key = vec4<u32>(first_key + k + 16u * j);
      let bent = capped(scores[j] * p.scale) - slope * abs((*rows).own - vec4<f32>(key));
      let score = bent + biases_of(head, (*rows).own, key.x);
      masked[j] = select(vec4<f32>(FLOOR), score, (key >= (*rows).start) & (key < (*rows).to));
      part = max(part, masked[j]);
    }
    peaks[t] = part;
  }
  workgroupBarrier();
  var peak = (*rows).most;
  if (live) {
    for (var i = 0u; i < 16u; i++) { peak = max(peak, peaks[quad * 16u + i]); }
    for (var j = 0u; j < 4u; j++) {
      // A row without any position so far has the floor as its maximum.
      let share = select(exp(masked[j] - peak), vec4<f32>(), masked[j] == vec4<f32>(FLOOR));
      tile[(k + 16u * j) * (ROWS / 4u) + quad] = share;
    }
  }
  workgroupBarrier();
  let kept = exp((*rows).most - peak);
  (*rows).most = peak;
  (*rows).total *= kept;
  return kept;
}

/// The outer product of a value and four shares: one column per share.
fn spread(value: vec4<f32>, share: vec4<f32>) -> mat4x4<f32> {
  return mat4x4<f32>(value * share.x, value * share.y, value * share.z, value * share.w);
}

fn keep(sums: mat4x4<f32>, kept: vec4<f32>) -> mat4x4<f32> {
  return mat4x4<f32>(sums[0] * kept.x, sums[1] * kept.y, sums[2] * kept.z, sums[3] * kept.w);
}

fn store(row: u32, last: u32, head: u32, column: u32, sums: mat4x4<f32>, total: vec4<f32>) {
  for (var r = 0u; r < 4u; r++) {
    if (row + r >= last) { return; }
    for (var c = 0u; c < 4u; c++) {
      let i = 4u * column + c;
      if (i < p.value_dim) { y[((row + r) * p.heads + head) * p.value_dim + i] = sums[r][c] / total[r]; }
    }
  }
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let head = group.x % p.heads;
  let first = group.y * ROWS;
  let last = min(first + ROWS, batch[0].x);
  let kv_dim = p.kv_heads * p.head_dim;
  let kv_head = head * p.kv_heads / p.heads;
  let key_columns = (p.head_dim + 3u) / 4u;
  let columns = (p.value_dim + 3u) / 4u;
  // A thread has four rows, and every sixteenth column of four values of their results.
  let quad = t / 16u;
  let column = t % 16u + group.x / p.heads * 64u;
  var a = mat4x4<f32>(); // one column per row
  var b = mat4x4<f32>();
  var c = mat4x4<f32>();
  var d = mat4x4<f32>();
  var rows = Rows(vec4<u32>(), vec4<u32>(), vec4<f32>(), vec4<f32>(FLOOR), vec4<f32>());
  if (p.has_sinks > 0u) {
    rows.most = vec4<f32>(extras[p.has_sinks - 1u + head]);
    rows.total = vec4<f32>(1.0);
  }
  var slope = 0.0;
  if (p.has_slopes > 0u) { slope = extras[p.has_slopes - 1u + head]; }
  for (var begin = first; begin < last; begin = sequence_end(begin, last)) {
    let end = sequence_end(begin, last);
    for (var r = 0u; r < 4u; r++) {
      let row = first + quad * 4u + r;
      let reach = reach_of(clamp(row, begin, end - 1u));
      rows.start[r] = reach.start;
      rows.own[r] = f32(reach.own);
      rows.to[r] = select(0u, reach.to, row >= begin && row < end);
    }
    let live = first + quad * 4u < end && first + quad * 4u + 4u > begin;
    let all = reach_of_all(begin, end);
    for (var key = all.start / KEYS * KEYS; key < all.to; key += KEYS) {
      let count = min(KEYS, all.to - key);
      let at = (all.base + key) * kv_dim + kv_head * p.head_dim;
      let values_at = (all.base + key) * p.value_row + kv_head * p.value_dim + p.value_skip;
      var scores = mat4x4<f32>();
      for (var depth = 0u; depth < key_columns; depth += DEPTH) {
        load(first, last, head, at, count, depth, t);
        workgroupBarrier();
        if (live) { scores += products(quad, t % 16u, min(DEPTH, key_columns - depth)); }
        workgroupBarrier();
      }
      let kept = share_tile(scores, &rows, slope, head, key, t, live);
      a = keep(a, kept);
      b = keep(b, kept);
      c = keep(c, kept);
      d = keep(d, kept);
      for (var k = 0u; k < select(0u, count, live); k++) {
        let share = tile[k * (ROWS / 4u) + quad];
        let value = values_at + k * p.value_row;
        rows.total += share;
        if (column < columns) { a += spread(value_four(value, 4u * column), share); }
        if (column + 16u < columns) { b += spread(value_four(value, 4u * column + 64u), share); }
        if (column + 32u < columns) { c += spread(value_four(value, 4u * column + 128u), share); }
        if (column + 48u < columns) { d += spread(value_four(value, 4u * column + 192u), share); }
      }
      workgroupBarrier();
    }
  }
  let row = first + quad * 4u;
  store(row, last, head, column, a, rows.total);
  store(row, last, head, column + 16u, b, rows.total);
  store(row, last, head, column + 32u, c, rows.total);
  store(row, last, head, column + 48u, d, rows.total);
}

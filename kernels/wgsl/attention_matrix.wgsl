// attention_matrix: as attention_tile with a cache, by subgroup matrices: queries, keys, values and shares are float16,
// scores and sums float32. A line is one head of one row. A workgroup has 32 neighbouring lines of the heads that share
// keys, and reads each key once for all. Each subgroup sums 32 lines by WIDTH of 64 columns. A line's sums depend
// neither on its place nor on other lines: its queries have a power of two of their own, and its shares are relative to
// a score of its own, which is raised only when another exceeds it by SLACK. Keys and values beyond 65,504 become
// infinite.
//
//   binding 0  q      storage, read        f32 (rows, heads · head_dim)
//   binding 1  keys   storage, read        cached (slots, ctx_len, kv_heads · head_dim)
//   binding 2  values storage, read        cached (slots, ctx_len, value_row)
//   binding 3  batch  storage, read        see batch.ts
//   binding 4  extras storage, read        f32, as in attention
//   binding 5  y      storage, read_write  f32 (rows, heads · value_dim)
//   binding 6  p      uniform              Params, head_dim and value_dim multiples of 4 up to DIM
//   dispatch   (kv_heads, ceil(rows · heads / kv_heads / 32), 1), 64 threads each
//   oracle     src/engine/backends/cpu/attention.ts; tolerance 1e-6 of the sum of squares
struct Params {
  heads: u32,
  kv_heads: u32,
  head_dim: u32,
  value_dim: u32,
  value_row: u32, // values of a position
  value_skip: u32, // index of the first value that is read in a head
  ctx_len: u32,
  window: u32,
  chunked: u32, // 1: the window cuts positions into chunks
  scale: f32,
  soft_cap: f32,
  spans: u32, // 1: a row attends to all of its span
  has_sinks: u32, // 0, or their offset in `extras` plus one
  has_slopes: u32, // the same
  has_biases: u32, // 0: attention with biases has no cache
  far: u32,
}
@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> keys: array<Four>;
@group(0) @binding(2) var<storage, read> values: array<Four>;
@group(0) @binding(3) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> extras: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(6) var<uniform> p: Params;
alias Element = f16;
//#splice matrices
//#splice cache
//#splice heads
//#splice reach
const WG: u32 = 64u;
const LINES: u32 = 32u;
const KEYS: u32 = 64u;
/// Columns of values, and of scores, that all subgroups sum at once.
const COLUMNS: u32 = 64u;
/// The largest head.
const DIM: u32 = 128u;
/// Dimensions of keys, or positions of values, in workgroup memory at once.
const SLICE: u32 = 64u;
/// Vec4s per line in workgroup memory; the last is padding, which keeps threads in different banks.
const QUERY: u32 = DIM / 8u + 1u;
const KEY: u32 = SLICE / 8u + 1u;
const VALUE: u32 = COLUMNS / 8u + 1u;
const SUM: u32 = COLUMNS / 4u + 1u;
/// Rows of sums in workgroup memory at once.
const STRIP: u32 = 16u;
const DOWN: u32 = STRIP / M;
const ACROSS: u32 = WIDTH / N;
/// A share is at most e^SLACK, and fits float16.
const SLACK: f32 = 8.0;
const INFINITY: u32 = 0x7f800000u;
const NAN_BITS: u32 = 0x7fc00000u;
var<workgroup> queries: array<vec4<u32>, LINES * QUERY>; // (LINES, QUERY) halves
var<workgroup> slice: array<vec4<u32>, KEYS * KEY>; // halves (KEYS, KEY) or (SLICE, VALUE), or floats (STRIP, SUM)
var<workgroup> scores: array<vec4<u32>, LINES * SUM>; // (LINES, SUM) floats, then shares as halves
var<workgroup> marks: array<u32, WG>;
var<workgroup> kept: array<f32, LINES>;
var<workgroup> raised: u32; // the last tile of keys for which a line's sums are to be rescaled

alias Strip = array<array<Sums, ACROSS>, 2u * DOWN>;
alias Outputs = array<Strip, DIM / COLUMNS>;

fn halves(low: vec4<f32>, high: vec4<f32>) -> vec4<u32> {
  return vec4<u32>(
    pack2x16float(low.xy), pack2x16float(low.zw), pack2x16float(high.xy), pack2x16float(high.zw));
}

/// Loads a half of a thread's line of queries, each line divided by a power of two, so that its largest value is below
/// 32,768. Zeros beyond the head. Returns the power of two.
fn load_queries(at: u32, isLine: bool, t: u32) -> f32 {
  let line = t % LINES;
  let first = t / LINES * (DIM / 2u);
  var own = 0u;
  for (var i = first; i < min(first + DIM / 2u, p.head_dim) && isLine; i += 4u) {
    // The bits of floats without their sign are in the order of their values, and NaN comes last.
    let bits = bitcast<vec4<u32>>(q[(at + i) / 4u]) & vec4<u32>(0x7fffffffu);
    own = max(own, max(max(bits.x, bits.y), max(bits.z, bits.w)));
  }
  marks[t] = own;
  workgroupBarrier();
  let most = max(marks[line], marks[line + LINES]);
  let exponent = max(most >> 23u, 15u) - 14u;
  let factor = bitcast<f32>((254u - exponent) << 23u);
  for (var i = first; i < first + DIM / 2u; i += 8u) {
    var low = vec4<f32>();
    var high = vec4<f32>();
    if (isLine && i < p.head_dim) { low = q[(at + i) / 4u] * factor; }
    if (isLine && i + 4u < p.head_dim) { high = q[(at + i) / 4u + 1u] * factor; }
    queries[line * QUERY + i / 8u] = halves(low, high);
  }
  return bitcast<f32>(select(exponent << 23u, NAN_BITS, most >= INFINITY));
}

fn key_halves(at: u32) -> vec2<u32> { return halves_of(keys[four_place(at)], keys[scale_place(at)], at); }
fn value_halves(at: u32) -> vec2<u32> { return halves_of(values[four_place(at)], values[scale_place(at)], at); }

/// Loads dimensions `depth` … `depth + SLICE − 1` of keys, zeros beyond their ends.
fn load_keys(at: u32, count: u32, depth: u32, t: u32) {
  for (var e = t; e < KEYS * (SLICE / 8u); e += WG) {
    let k = e / (SLICE / 8u);
    let i = depth + 8u * (e % (SLICE / 8u));
    var eight = vec4<u32>();
    let four = (at + k * p.kv_heads * p.head_dim + i) / 4u;
    if (k < count && i < p.head_dim) { eight = vec4<u32>(key_halves(four), 0u, 0u); }
    if (k < count && i + 4u < p.head_dim) { eight = vec4<u32>(eight.xy, key_halves(four + 1u)); }
    slice[k * KEY + (i - depth) / 8u] = eight;
  }
}

/// Loads columns `column` … `column + COLUMNS − 1` of the values of SLICE positions, zeros beyond their ends.
fn load_values(at: u32, count: u32, column: u32, first: u32, t: u32) {
  for (var e = t; e < SLICE * (COLUMNS / 8u); e += WG) {
    let k = e / (COLUMNS / 8u);
    let i = column + 8u * (e % (COLUMNS / 8u));
    var eight = vec4<u32>();
    let four = (at + (first + k) * p.value_row + i) / 4u;
    if (first + k < count && i < p.value_dim) { eight = vec4<u32>(value_halves(four), 0u, 0u); }
    if (first + k < count && i + 4u < p.value_dim) { eight = vec4<u32>(eight.xy, value_halves(four + 1u)); }
    slice[k * VALUE + (i - column) / 8u] = eight;
  }
}

/// Leaves Σ query · key of all lines by 64 keys in `scores`. @param side the first column of the thread's subgroup
fn score(at: u32, count: u32, side: u32, t: u32) {
  var sums: Strip;
  for (var depth = 0u; depth < p.head_dim; depth += SLICE) {
    load_keys(at, count, depth, t);
    workgroupBarrier();
    for (var k = 0u; k < SLICE; k += K) {
      var right: array<Right, ACROSS>;
      for (var j = 0u; j < ACROSS; j++) {
        right[j] = subgroupMatrixLoad<Right, col_major>(&slice, (side + j * N) * KEY + k / 8u, KEY);
      }
      for (var i = 0u; i < 2u * DOWN; i++) {
        let left = subgroupMatrixLoad<Left, row_major>(&queries, i * M * QUERY + (depth + k) / 8u, QUERY);
        for (var j = 0u; j < ACROSS; j++) { sums[i][j] = subgroupMatrixMultiplyAccumulate(left, right[j], sums[i][j]); }
      }
    }
    workgroupBarrier();
  }
  for (var i = 0u; i < 2u * DOWN; i++) {
    for (var j = 0u; j < ACROSS; j++) {
      subgroupMatrixStore<row_major>(&scores, i * M * SUM + (side + j * N) / 4u, sums[i][j], SUM);
    }
  }
  workgroupBarrier();
}

/// A line of the current sequence: its keys, its factor, the score that its shares are relative to, and their total, of
/// which its other thread has a part. `begun`: it has seen a key.
struct Line { start: u32, to: u32, own: f32, factor: f32, slope: f32, most: f32, total: f32, begun: bool }

/// Converts half of a line's scores to shares. Earlier sums are multiplied by `kept` if the tile is in `raised`.
fn share_tile(line: ptr<function, Line>, first_key: u32, tile: u32, t: u32) {
  let place = t % LINES;
  let half = t / LINES;
  var masked: array<vec4<f32>, 8>;
  var peak = FLOOR;
  for (var i = 0u; i < 8u; i++) {
    let four = bitcast<vec4<f32>>(scores[place * SUM + 8u * half + i]) * (*line).factor;
    let key = vec4<u32>(first_key + 32u * half + 4u * i) + vec4<u32>(0u, 1u, 2u, 3u);
    let each = capped(four) - (*line).slope * abs((*line).own - vec4<f32>(key));
    let isSeen = (key >= vec4<u32>((*line).start)) & (key < vec4<u32>((*line).to));
    masked[i] = select(vec4<f32>(FLOOR), each, isSeen);
    peak = max(peak, max(max(masked[i].x, masked[i].y), max(masked[i].z, masked[i].w)));
  }
  marks[t] = bitcast<u32>(peak);
  workgroupBarrier();
  peak = max(bitcast<f32>(marks[place]), bitcast<f32>(marks[place + LINES]));
  let before = (*line).most;
  if (peak > before + select(0.0, SLACK, (*line).begun)) {
    let keep = exp(before - peak);
    (*line).most = peak;
    (*line).total *= keep;
    if ((*line).begun) { raised = tile; }
    kept[place] = keep;
  } else {
    kept[place] = 1.0;
  }
  (*line).begun = (*line).begun || peak > FLOOR;
  for (var i = 0u; i < 8u; i += 2u) {
    let rounded = halves(share_of(masked[i], (*line).most), share_of(masked[i + 1u], (*line).most));
    let pairs = unpack2x16float(rounded.x) + unpack2x16float(rounded.y) + unpack2x16float(rounded.z);
    let both = pairs + unpack2x16float(rounded.w);
    (*line).total += both.x + both.y;
    scores[place * SUM + 4u * half + i / 2u] = rounded;
  }
}

fn share_of(score: vec4<f32>, most: f32) -> vec4<f32> {
  // A line without any position so far has the floor as its maximum.
  return select(exp(score - most), vec4<f32>(), score == vec4<f32>(FLOOR));
}

/// Leaves a strip of sums in `slice`.
fn store_strip(sums: ptr<function, Outputs>, column: u32, strip: u32, side: u32) {
  for (var i = 0u; i < DOWN; i++) {
    for (var j = 0u; j < ACROSS; j++) {
      let at = i * M * SUM + (side + j * N) / 4u;
      subgroupMatrixStore<row_major>(&slice, at, (*sums)[column][strip * DOWN + i][j], SUM);
    }
  }
  workgroupBarrier();
}

/// Multiplies all sums of each line by its `kept`.
fn rescale(sums: ptr<function, Outputs>, side: u32, t: u32) {
  for (var column = 0u; column < DIM / COLUMNS; column++) {
    for (var strip = 0u; strip < 2u; strip++) {
      store_strip(sums, column, strip, side);
      for (var e = t; e < STRIP * (COLUMNS / 4u); e += WG) {
        let row = e / (COLUMNS / 4u);
        let at = row * SUM + e % (COLUMNS / 4u);
        slice[at] = bitcast<vec4<u32>>(bitcast<vec4<f32>>(slice[at]) * kept[strip * STRIP + row]);
      }
      workgroupBarrier();
      for (var i = 0u; i < DOWN; i++) {
        for (var j = 0u; j < ACROSS; j++) {
          let at = i * M * SUM + (side + j * N) / 4u;
          (*sums)[column][strip * DOWN + i][j] = subgroupMatrixLoad<Sums, row_major>(&slice, at, SUM);
        }
      }
      workgroupBarrier();
    }
  }
}

/// Adds shares · values of a tile.
fn add_values(sums: ptr<function, Outputs>, at: u32, count: u32, side: u32, t: u32) {
  for (var column = 0u; column < DIM / COLUMNS; column++) {
    for (var first = 0u; first < KEYS && column * COLUMNS < p.value_dim; first += SLICE) {
      load_values(at, count, column * COLUMNS, first, t);
      workgroupBarrier();
      for (var k = 0u; k < SLICE; k += K) {
        var right: array<Right, ACROSS>;
        for (var j = 0u; j < ACROSS; j++) {
          right[j] = subgroupMatrixLoad<Right, row_major>(&slice, k * VALUE + (side + j * N) / 8u, VALUE);
        }
        for (var i = 0u; i < 2u * DOWN; i++) {
          let left = subgroupMatrixLoad<Left, row_major>(&scores, i * M * SUM + (first + k) / 8u, SUM);
          for (var j = 0u; j < ACROSS; j++) {
            (*sums)[column][i][j] = subgroupMatrixMultiplyAccumulate(left, right[j], (*sums)[column][i][j]);
          }
        }
      }
      workgroupBarrier();
    }
  }
}

/// Divides sums by the totals in `kept`, and stores them.
fn store(sums: ptr<function, Outputs>, first: u32, last: u32, kv_head: u32, side: u32, t: u32) {
  let shared_by = p.heads / p.kv_heads;
  for (var column = 0u; column < DIM / COLUMNS; column++) {
    for (var strip = 0u; strip < 2u; strip++) {
      store_strip(sums, column, strip, side);
      for (var e = t; e < STRIP * (COLUMNS / 4u); e += WG) {
        let row = e / (COLUMNS / 4u);
        let line = first + strip * STRIP + row;
        let i = column * COLUMNS + 4u * (e % (COLUMNS / 4u));
        if (line >= last || i >= p.value_dim) { continue; }
        let head = line / shared_by * p.heads + kv_head * shared_by + line % shared_by;
        let four = bitcast<vec4<f32>>(slice[row * SUM + e % (COLUMNS / 4u)]);
        y[(head * p.value_dim + i) / 4u] = four / kept[strip * STRIP + row];
      }
      workgroupBarrier();
    }
  }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, thread: Thread) {
  let t = thread.t;
  let side = thread.subgroup % (COLUMNS / WIDTH) * WIDTH;
  let shared_by = p.heads / p.kv_heads;
  let kv_head = group.x;
  let first = group.y * LINES;
  let last = min(first + LINES, batch[0].x * shared_by);
  let last_row = (last - 1u) / shared_by + 1u;
  let isLine = first + t % LINES < last;
  let row = (first + t % LINES) / shared_by;
  let head = kv_head * shared_by + (first + t % LINES) % shared_by;
  if (t == 0u) { raised = 0u; }
  var line = Line(0u, 0u, 0.0, 0.0, 0.0, FLOOR, 0.0, false);
  line.factor = load_queries((row * p.heads + head) * p.head_dim, isLine, t) * p.scale;
  if (p.has_sinks > 0u) {
    line.most = extras[p.has_sinks - 1u + head];
    line.total = select(0.0, 1.0, t < LINES);
  }
  if (p.has_slopes > 0u) { line.slope = extras[p.has_slopes - 1u + head]; }
  var sums: Outputs;
  var tile = 0u;
  for (var begin = first / shared_by; begin < last_row; begin = sequence_end(begin, last_row)) {
    let end = sequence_end(begin, last_row);
    let reach = reach_of(clamp(row, begin, end - 1u));
    line.start = reach.start;
    line.own = f32(reach.own);
    line.to = select(0u, reach.to, isLine && row >= begin && row < end);
    let all = reach_of_all(begin, end);
    for (var key = all.start / KEYS * KEYS; key < all.to; key += KEYS) {
      let count = min(KEYS, all.to - key);
      tile++;
      score((all.base + key) * p.kv_heads * p.head_dim + kv_head * p.head_dim, count, side, t);
      share_tile(&line, key, tile, t);
      if (workgroupUniformLoad(&raised) == tile) { rescale(&sums, side, t); }
      let values_at = (all.base + key) * p.value_row + kv_head * p.value_dim + p.value_skip;
      add_values(&sums, values_at, count, side, t);
    }
  }
  marks[t] = bitcast<u32>(line.total);
  workgroupBarrier();
  if (t < LINES) { kept[t] = line.total + bitcast<f32>(marks[t + LINES]); }
  store(&sums, first, last, kv_head, side, t);
}

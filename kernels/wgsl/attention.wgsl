// attention: up to four heads that share keys, of one row, over a split of what the row sees, by online softmax over
// tiles of 64 positions (arXiv:1805.02867). Eight neighbouring threads read one key, so that reads are whole lines of
// the cache. A row's only split writes the result, several leave parts for attention_reduce.
//
//   binding 0  q      storage, read        f32 (rows, heads · head_dim)
//   binding 1  keys   storage, read        f32 or f16 (slots, ctx_len, kv_heads · head_dim)
//   binding 2  values storage, read        as keys
//   binding 3  batch  storage, read        see batch.ts
//   binding 4  y      storage, read_write  f32 (rows, heads · head_dim)
//   binding 5  parts  storage, read_write  f32 (rows, heads, splits, head_dim + 2): sums, peak, total
//   binding 6  p      uniform              Params
//   dispatch   (kv_heads · quads, rows, splits), 64 threads each; head_dim at most 256
//   oracle     src/backend/cpu/ops.ts attention; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  heads: u32,
  kv_heads: u32,
  head_dim: u32,
  ctx_len: u32,
  window: u32,
  scale: f32,
  soft_cap: f32,
  whole_len: u32,
  least_len: u32,
  splits: u32, // room in parts
}
@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> keys: array<Four>;
@group(0) @binding(2) var<storage, read> values: array<Four>;
@group(0) @binding(3) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read_write> parts: array<f32>;
@group(0) @binding(6) var<uniform> p: Params;
const WG: u32 = 64u;
const TILE: u32 = 64u;
const LANES: u32 = 8u; // threads that share a key
const STRIDE: u32 = 9u; // LANES and one to keep threads in different banks
var<workgroup> query: array<vec4<f32>, 256>; // (4, 64): of each vec4 of a key, what its values are multiplied by
var<workgroup> scratch: array<vec4<f32>, 576>; // (TILE, STRIDE) parts of scores, then (4, WG) of sums
var<workgroup> scores: array<vec4<f32>, 64>; // (TILE), then shares of the tile, then totals
var<workgroup> peaks: array<vec4<f32>, 8>;
//#splice cache
//#splice heads
//#splice splits

/// The heads of a workgroup: a lane of every vec4 each.
struct Quad { row: u32, first: u32, count: u32, columns: u32 }

fn load_query(quad: Quad, t: u32) {
  for (var i = t; i < quad.columns * 4u; i += WG) {
    var four = vec4<f32>();
    for (var h = 0u; h < quad.count && i < p.head_dim; h++) {
      four[h] = q[(quad.row * p.heads + quad.first + h) * p.head_dim + i] * p.scale;
    }
    query[(i % 4u) * 64u + i / 4u] = four;
  }
}

/// The scores of position `tile + t` for each head. Positions behind `end` are taken for the last.
fn score_tile(base: u32, kv_dim: u32, tile: u32, end: u32, columns: u32, t: u32) -> vec4<f32> {
  let lane = t % LANES;
  for (var i = t / LANES; i < TILE; i += WG / LANES) {
    let at = base + min(tile + i, end - 1u) * kv_dim;
    var sum = vec4<f32>();
    for (var d = lane; d < columns; d += LANES) {
      let key = key_four(at, 4u * d);
      sum += key.x * query[d] + key.y * query[64u + d] + key.z * query[128u + d] + key.w * query[192u + d];
    }
    scratch[i * STRIDE + lane] = sum;
  }
  workgroupBarrier();
  var score = vec4<f32>();
  for (var lane = 0u; lane < LANES; lane++) { score += scratch[t * STRIDE + lane]; }
  return select(vec4<f32>(FLOOR), capped(score), tile + t < end);
}

/// The greatest of all threads' scores.
fn peak_of(score: vec4<f32>, t: u32) -> vec4<f32> {
  scores[t] = score;
  workgroupBarrier();
  if (t < 8u) {
    var peak = scores[8u * t];
    for (var i = 1u; i < 8u; i++) { peak = max(peak, scores[8u * t + i]); }
    peaks[t] = peak;
  }
  workgroupBarrier();
  var peak = peaks[0];
  for (var i = 1u; i < 8u; i++) { peak = max(peak, peaks[i]); }
  return peak;
}

/// Adds up what the threads of a column found, and writes the result, or a part of it.
fn store(quad: Quad, split: u32, whole: bool, peak: vec4<f32>, t: u32) {
  let turns = WG / quad.columns;
  for (var i = t; i < quad.count * quad.columns; i += WG) {
    let h = i / quad.columns;
    let column = i % quad.columns;
    var sum = vec4<f32>();
    var total = 0.0;
    for (var turn = 0u; turn < turns; turn++) {
      sum += scratch[h * WG + turn * quad.columns + column];
      total += scores[turn * quad.columns][h];
    }
    let head = quad.row * p.heads + quad.first + h;
    let part = (head * p.splits + split) * (p.head_dim + 2u);
    for (var c = 0u; c < min(4u, p.head_dim - 4u * column); c++) {
      let at = 4u * column + c;
      if (whole) { y[head * p.head_dim + at] = sum[c] / total; } else { parts[part + at] = sum[c]; }
    }
    if (!whole && column == 0u) {
      parts[part + p.head_dim] = peak[h];
      parts[part + p.head_dim + 1u] = total;
    }
  }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = batch[1u + 2u * group.y];
  let seen = seen_from(row.z);
  let len = split_len(seen);
  let first = row.z + 1u - seen;
  let start = first + group.z * len;
  let end = min(start + len, row.z + 1u);
  if (start >= end) { return; }
  let shared_by = p.heads / p.kv_heads;
  let quads = (shared_by + 3u) / 4u;
  let kv_head = group.x / quads;
  let lead = (group.x % quads) * 4u;
  let columns = (p.head_dim + 3u) / 4u;
  let quad = Quad(group.y, kv_head * shared_by + lead, min(4u, shared_by - lead), columns);
  let kv_dim = p.kv_heads * p.head_dim;
  let base = row.y * p.ctx_len * kv_dim + kv_head * p.head_dim;
  load_query(quad, t);
  workgroupBarrier();
  // The threads of a column of values take turns at positions.
  let turns = WG / columns;
  let column = t % columns;
  var most = vec4<f32>(FLOOR);
  var total = vec4<f32>();
  var sums = mat4x4<f32>(); // a column for each head
  for (var tile = start; tile < end; tile += TILE) {
    let score = score_tile(base, kv_dim, tile, end, columns, t);
    let peak = max(most, peak_of(score, t));
    scores[t] = select(vec4<f32>(), exp(score - peak), tile + t < end);
    workgroupBarrier();
    let kept = exp(most - peak);
    most = peak;
    total *= kept;
    for (var h = 0u; h < 4u; h++) { sums[h] *= kept[h]; }
    for (var i = t / columns; i < min(TILE, end - tile) && t < turns * columns; i += turns) {
      let share = scores[i];
      let value = value_four(base + (tile + i) * kv_dim, 4u * column);
      total += share;
      sums += mat4x4<f32>(value * share.x, value * share.y, value * share.z, value * share.w);
    }
    workgroupBarrier();
  }
  for (var h = 0u; h < 4u; h++) { scratch[h * WG + t] = sums[h]; }
  scores[t] = total;
  workgroupBarrier();
  store(quad, group.z, seen <= len, most, t);
}

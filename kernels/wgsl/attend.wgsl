// attend: online softmax over tiles of 64 positions (arXiv:1805.02867) for up to four heads that share keys, spliced
// into the kernels for few rows. Eight neighbouring threads read one key, so that reads are whole cache lines.

const WG: u32 = 64u;
const TILE: u32 = 64u;
const LANES: u32 = 8u; // threads that share a key
const STRIDE: u32 = 9u; // LANES plus one, to keep threads in different banks
var<workgroup> query: array<vec4<f32>, 256>; // (4, 64): factors for each vec4 of a key
var<workgroup> scratch: array<vec4<f32>, 576>; // (TILE, STRIDE) parts of scores, then (4, WG) of sums
var<workgroup> scores: array<vec4<f32>, 64>; // (TILE), then shares of the tile, then totals
var<workgroup> peaks: array<vec4<f32>, 8>;

/// The heads of a workgroup, one per lane of every vec4, and the number of vec4s per head.
struct Quad { row: u32, kv_head: u32, first: u32, count: u32, columns: u32 }

fn quad_of(group: vec3<u32>) -> Quad {
  let shared_by = p.heads / p.kv_heads;
  let quads = (shared_by + 3u) / 4u;
  let kv_head = group.x / quads;
  let lead = (group.x % quads) * 4u;
  return Quad(group.y, kv_head, kv_head * shared_by + lead, min(4u, shared_by - lead), (p.head_dim + 3u) / 4u);
}

/// The positions of a split of a row's context; empty if `end` <= `start`.
struct Span { start: u32, end: u32, whole: bool }

fn span_of(position: u32, split: u32) -> Span {
  let seen = seen_from(position);
  let len = split_len(seen);
  let start = position + 1u - seen + split * len;
  return Span(start, min(start + len, position + 1u), seen <= len);
}

/// Running results of a thread for its column of the values.
struct Found { most: vec4<f32>, total: vec4<f32>, sums: mat4x4<f32> }

/// The scores of position `tile + t` for each head. Positions from `end` on repeat the last.
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

/// The maximum of all threads' scores.
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

/// Sums the results of a column's threads, and writes the total, or a part of it.
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

/// Adds positions `start` to `end`. The threads of a column take turns at positions.
fn attend(found: ptr<function, Found>, base: u32, start: u32, end: u32, columns: u32, t: u32) {
  let kv_dim = p.kv_heads * p.head_dim;
  let turns = WG / columns;
  let column = t % columns;
  for (var tile = start; tile < end; tile += TILE) {
    let score = score_tile(base, kv_dim, tile, end, columns, t);
    let peak = max((*found).most, peak_of(score, t));
    scores[t] = select(vec4<f32>(), exp(score - peak), tile + t < end);
    workgroupBarrier();
    raise(found, peak);
    for (var i = t / columns; i < min(TILE, end - tile) && t < turns * columns; i += turns) {
      add_value(found, scores[i], value_four(base + (tile + i) * kv_dim, 4u * column));
    }
    workgroupBarrier();
  }
}

/// Rescales the results so far to a greater maximum.
fn raise(found: ptr<function, Found>, peak: vec4<f32>) {
  let kept = exp((*found).most - peak);
  (*found).most = peak;
  (*found).total *= kept;
  for (var h = 0u; h < 4u; h++) { (*found).sums[h] *= kept[h]; }
}

fn add_value(found: ptr<function, Found>, share: vec4<f32>, value: vec4<f32>) {
  (*found).total += share;
  (*found).sums += mat4x4<f32>(value * share.x, value * share.y, value * share.z, value * share.w);
}

/// Leaves the threads' results for `store`.
fn gather(found: Found, t: u32) {
  for (var h = 0u; h < 4u; h++) { scratch[h * WG + t] = found.sums[h]; }
  scores[t] = found.total;
  workgroupBarrier();
}

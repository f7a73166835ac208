// attend: online softmax over tiles of positions (arXiv:1805.02867) for up to four heads that share keys, spliced into
// the kernels for few rows after `narrow` or `wide`. `place_of` gives the index of a position in the cache, `is_own`
// says whether the row attends to it, `biases_of` gives the parts of scores that depend on the distance from the row,
// `key_part` and `value_part` read four values there. Eight neighbouring threads
// read one key, so that reads are whole cache lines.

const LANES: u32 = 8u; // threads that share a key
const STRIDE: u32 = 9u; // LANES plus one, to keep threads in different banks
var<workgroup> query: array<vec4<f32>, 4u * KEY_FOURS>; // (4, KEY_FOURS) factors of a key's vec4s, then (4, WG) sums
var<workgroup> scratch: array<vec4<f32>, TILE * STRIDE>; // parts of scores
var<workgroup> scores: array<vec4<f32>, WG>; // (TILE), then shares of the tile, then totals of each thread
var<workgroup> peaks: array<vec4<f32>, 8>;

/// The heads of a workgroup, one per lane of every vec4, and the vec4s of a key and of a value.
struct Quad { row: u32, position: u32, kv_head: u32, first: u32, count: u32, key_columns: u32, columns: u32 }

fn quad_of(group: vec3<u32>, position: u32) -> Quad {
  let shared_by = p.heads / p.kv_heads;
  let quads = (shared_by + 3u) / 4u;
  let kv_head = group.x / quads;
  let lead = (group.x % quads) * 4u;
  let first = kv_head * shared_by + lead;
  let count = min(4u, shared_by - lead);
  return Quad(group.y, position, kv_head, first, count, (p.head_dim + 3u) / 4u, (p.value_dim + 3u) / 4u);
}

/// Rotates the queries, if keys are rotated. All threads call it, after a barrier.
fn rotate_query(quad: Quad, t: u32) {
  if (!ROTATES) { return; }
  let block = rotated_block(p.head_dim, p.value_skip);
  let factor = rotation_factor(block);
  for (var d = t; d < quad.key_columns; d += WG) {
    let sums = mat2x4<f32>(query[d] + query[KEY_FOURS + d], query[2u * KEY_FOURS + d] + query[3u * KEY_FOURS + d]);
    let rests = mat2x4<f32>(query[d] - query[KEY_FOURS + d], query[2u * KEY_FOURS + d] - query[3u * KEY_FOURS + d]);
    query[d] = (sums[0] + sums[1]) * factor;
    query[KEY_FOURS + d] = (rests[0] + rests[1]) * factor;
    query[2u * KEY_FOURS + d] = (sums[0] - sums[1]) * factor;
    query[3u * KEY_FOURS + d] = (rests[0] - rests[1]) * factor;
  }
  workgroupBarrier();
  rotate_columns(KEY_FOURS, 4u, quad.key_columns, block / 4u, t);
}

/// One stage of the Hadamard rotation per power of two: combines pairs among the first `columns` values of each of
/// `count` parts of `query`, which begin `stride` apart.
fn rotate_columns(stride: u32, count: u32, columns: u32, block: u32, t: u32) {
  let pairs = columns / 2u;
  for (var half = 1u; half < block; half *= 2u) {
    for (var i = t; i < count * pairs; i += WG) {
      let pair = i % pairs;
      let at = i / pairs * stride + pair / half * 2u * half + pair % half;
      let a = query[at];
      let b = query[at + half];
      query[at] = a + b;
      query[at + half] = a - b;
    }
    workgroupBarrier();
  }
}

/// Sums the results of a column's threads in the first, and rotates them back, if values are rotated.
fn rotate_back(quad: Quad, t: u32) {
  if (!ROTATES) { return; }
  let block = rotated_block(p.value_dim, p.value_skip);
  for (var i = t; i < quad.count * quad.columns; i += WG) {
    let at = i / quad.columns * WG + i % quad.columns;
    var sum = vec4<f32>();
    for (var turn = 0u; turn < WG / quad.columns; turn++) { sum += query[at + turn * quad.columns]; }
    query[at] = rotate_lanes(sum * rotation_factor(block));
  }
  workgroupBarrier();
  rotate_columns(WG, quad.count, quad.columns, block / 4u, t);
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

/// Initial results: none, or, in a row's first split, its sinks, each in the total of one thread of a column.
fn found_none(quad: Quad, split: u32, t: u32) -> Found {
  var found = Found(vec4<f32>(FLOOR), vec4<f32>(), mat4x4<f32>());
  if (p.has_sinks == 0u || split > 0u) { return found; }
  for (var h = 0u; h < quad.count; h++) {
    found.most[h] = extra(p.has_sinks - 1u + quad.first + h);
    if (t < quad.columns) { found.total[h] = 1.0; }
  }
  return found;
}

/// The slopes of the heads by distance.
fn slopes_of(quad: Quad) -> vec4<f32> {
  var slopes = vec4<f32>();
  if (p.has_slopes == 0u) { return slopes; }
  for (var h = 0u; h < quad.count; h++) { slopes[h] = extra(p.has_slopes - 1u + quad.first + h); }
  return slopes;
}

/// The scores of position `tile + t` for each head. Positions from `end` on repeat the last.
fn score_tile(base: u32, kv_dim: u32, tile: u32, end: u32, quad: Quad, t: u32) -> vec4<f32> {
  let lane = t % LANES;
  for (var i = t / LANES; i < TILE; i += WG / LANES) {
    let position = min(tile + i, end - 1u);
    let at = base + place_of(quad, position) * kv_dim;
    var sum = vec4<f32>();
    for (var d = lane; d < quad.key_columns; d += LANES) {
      let key = key_part(quad, position, at, 4u * d);
      sum += key.x * query[d] + key.y * query[KEY_FOURS + d];
      sum += key.z * query[2u * KEY_FOURS + d] + key.w * query[3u * KEY_FOURS + d];
    }
    scratch[i * STRIDE + lane] = sum;
  }
  workgroupBarrier();
  if (t >= TILE || tile + t >= end || !is_own(quad, tile + t)) { return vec4<f32>(FLOOR); }
  var score = vec4<f32>();
  for (var lane = 0u; lane < LANES; lane++) { score += scratch[t * STRIDE + lane]; }
  let place = place_of(quad, tile + t);
  return capped(score) - slopes_of(quad) * f32(quad.position - place) + biases_of(quad, place);
}

/// The maximum of all threads' scores.
fn peak_of(score: vec4<f32>, t: u32) -> vec4<f32> {
  scores[t] = score;
  workgroupBarrier();
  if (t < TILE / 8u) {
    var peak = scores[8u * t];
    for (var i = 1u; i < 8u; i++) { peak = max(peak, scores[8u * t + i]); }
    peaks[t] = peak;
  }
  workgroupBarrier();
  var peak = peaks[0];
  for (var i = 1u; i < TILE / 8u; i++) { peak = max(peak, peaks[i]); }
  return peak;
}

/// Sums the results of a column's threads, and writes the total, or a part of it.
fn store(quad: Quad, split: u32, whole: bool, peak: vec4<f32>, t: u32) {
  let turns = WG / quad.columns;
  let parts_of_sum = select(turns, 1u, ROTATES); // rotate_back has summed the parts into one
  for (var i = t; i < quad.count * quad.columns; i += WG) {
    let h = i / quad.columns;
    let column = i % quad.columns;
    var sum = vec4<f32>();
    var total = 0.0;
    for (var turn = 0u; turn < turns; turn++) {
      if (turn < parts_of_sum) { sum += query[h * WG + turn * quad.columns + column]; }
      total += scores[turn * quad.columns][h];
    }
    let head = quad.row * p.heads + quad.first + h;
    let part = (head * p.splits + split) * (p.value_dim + 2u);
    for (var c = 0u; c < min(4u, p.value_dim - 4u * column); c++) {
      let at = 4u * column + c;
      if (whole) { y[head * p.value_dim + at] = sum[c] / total; } else { parts[part + at] = sum[c]; }
    }
    if (!whole && column == 0u) {
      parts[part + p.value_dim] = peak[h];
      parts[part + p.value_dim + 1u] = total;
    }
  }
}

/// Adds positions `start` to `end`. The threads of a column take turns at positions.
fn attend(found: ptr<function, Found>, slot: u32, start: u32, end: u32, quad: Quad, t: u32) {
  let kv_dim = p.kv_heads * p.head_dim;
  let base = slot * p.ctx_len * kv_dim + quad.kv_head * p.head_dim;
  let values_at = slot * p.ctx_len * p.value_row + quad.kv_head * p.value_dim + p.value_skip;
  let columns = quad.columns;
  let turns = WG / columns;
  let column = t % columns;
  for (var tile = start; tile < end; tile += TILE) {
    let score = score_tile(base, kv_dim, tile, end, quad, t);
    let peak = max((*found).most, peak_of(score, t));
    let is_live = t < TILE && tile + t < end && is_own(quad, min(tile + t, end - 1u));
    scores[t] = select(vec4<f32>(), exp(score - peak), is_live);
    workgroupBarrier();
    raise(found, peak);
    for (var i = t / columns; i < min(TILE, end - tile) && t < turns * columns; i += turns) {
      let at = values_at + place_of(quad, tile + i) * p.value_row;
      add_value(found, scores[i], value_part(quad, tile + i, at, 4u * column));
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
  for (var h = 0u; h < 4u; h++) { query[h * WG + t] = found.sums[h]; }
  scores[t] = found.total;
  workgroupBarrier();
}

// score_positions: the scores of blocks of positions up to a row's own, for choose_positions. A block scores as its
// best position t: q · k_t for each head, or, with weights, Σ weight · max(q · k_t, 0) of all heads. Only the
// last of every `stride` positions has a key, which counts once the row has reached it; blocks and spans then count
// keys. A workgroup has a span of whole blocks: several in one tile of 64 keys, or one in several tiles.
//
//   binding 0  q       storage, read        f32 (rows, heads · head_dim)
//   binding 1  weights storage, read        f32 (rows, heads)
//   binding 2  keys    storage, read        cached (slots, ctx_len, head_dim)
//   binding 3  batch   storage, read        see batch.ts
//   binding 4  scores  storage, read_write  f32 (rows, heads · blocks), with weights (rows, blocks); blocks after a
//              row's own are not written
//   binding 5  p       uniform              Params
//   dispatch   (ceil(blocks / span), rows, 1), 64 threads each
//   oracle     src/engine/backends/cpu/choose.ts; tolerance 2e-5 abs + 2e-4 rel
struct Params {
  heads: u32,
  head_dim: u32,
  ctx_len: u32,
  block: u32, // positions of a block
  blocks: u32, // in the longest context
  span: u32, // blocks of a workgroup: no more than fit a tile, or one
  has_weights: u32,
  stride: u32, // positions between keys
}
@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> keys: array<Four>;
@group(0) @binding(3) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> scores: array<f32>;
@group(0) @binding(5) var<uniform> p: Params;
const WG: u32 = 64u;
const HEADS: u32 = 16u;
const KEYS: u32 = 64u;
var<workgroup> queries: array<vec4<f32>, 144>; // (HEADS, STRIDE)
var<workgroup> tile: array<vec4<f32>, 576>; // (KEYS, STRIDE) of keys, then scores
//#splice cache
//#splice keys
//#splice products

/// Loads a part of the queries from `head` on and of `count` keys into workgroup memory, zeros beyond their ends.
fn load(row: u32, head: u32, at: u32, count: u32, depth: u32, t: u32) {
  let d = t % DEPTH;
  let i = 4u * (depth + d);
  let is_inside = i < p.head_dim;
  for (var h = t / DEPTH; h < HEADS; h += WG / DEPTH) {
    var four = vec4<f32>();
    if (is_inside && head + h < p.heads) { four = query_four((row * p.heads + head + h) * p.head_dim, i); }
    queries[h * STRIDE + d] = four;
  }
  for (var k = t / DEPTH; k < KEYS; k += WG / DEPTH) {
    var four = vec4<f32>();
    if (is_inside && k < count) { four = key_four(at + k * p.stride * p.head_dim, i); }
    tile[k * STRIDE + d] = four;
  }
}

/// The scores of four heads (lanes) by four keys (columns): thread 16 · a + b has heads 4a … 4a + 3, keys b, b + 16, …
fn score_heads(row: u32, head: u32, at: u32, count: u32, t: u32) -> mat4x4<f32> {
  var sums = mat4x4<f32>();
  let columns = (p.head_dim + 3u) / 4u;
  for (var depth = 0u; depth < columns; depth += DEPTH) {
    load(row, head, at, count, depth, t);
    workgroupBarrier();
    sums += products(t / 16u, t % 16u, min(DEPTH, columns - depth));
    workgroupBarrier();
  }
  return sums;
}

/// The parts of four heads in the scores of a thread's keys.
fn weighed(found: mat4x4<f32>, row: u32, head: u32) -> vec4<f32> {
  var factors = vec4<f32>();
  for (var h = 0u; h < 4u && head + h < p.heads; h++) { factors[h] = weights[row * p.heads + head + h]; }
  let above = mat4x4<f32>(max(found[0], vec4<f32>()), max(found[1], vec4<f32>()), max(found[2], vec4<f32>()),
    max(found[3], vec4<f32>()));
  return factors * above;
}

/// The score of key `k` in the tile, of a head or of all.
fn score_at(k: u32, head: u32) -> f32 {
  if (p.has_weights == 0u) { return tile[4u * k + head / 4u][head % 4u]; }
  var sum = 0.0;
  for (var a = 0u; a < 4u; a++) { sum += tile[16u * a + k % 16u][k / 16u]; }
  return sum;
}

/// Keeps the best score of each block for `count` heads, whose scores from `head` on begin at `to`: of positions
/// `first` … `end − 1`, whose scores lie in the tile, and of earlier tiles. Each thread has the same ones in all tiles.
fn keep_best(to: u32, count: u32, first: u32, end: u32, t: u32) {
  let lowest = first / p.block;
  let blocks = (end - 1u) / p.block + 1u - lowest;
  for (var i = t; i < count * blocks; i += WG) {
    let head = i % count;
    let block = lowest + i / count;
    let begin = max(block * p.block, first);
    var best = score_at(begin - first, head);
    for (var at = begin + 1u; at < min((block + 1u) * p.block, end); at++) {
      best = max(best, score_at(at - first, head));
    }
    let place = to + head * p.blocks + block;
    if (begin > block * p.block) { best = max(best, scores[place]); }
    scores[place] = best;
  }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = group.y;
  let own = batch[1u + 3u * row]; // token, slot, cell
  let begin = group.x * p.span * p.block;
  let end = min(begin + p.span * p.block, (own.z + 1u) / p.stride);
  for (var first = begin; first < end; first += KEYS) {
    let last = min(first + KEYS, end);
    let at = (own.y * p.ctx_len + (first + 1u) * p.stride - 1u) * p.head_dim;
    var sums = vec4<f32>();
    for (var head = 0u; head < p.heads; head += HEADS) {
      let found = score_heads(row, head, at, last - first, t);
      if (p.has_weights == 1u) {
        sums += weighed(found, row, head + t / 16u * 4u);
      } else {
        for (var j = 0u; j < 4u; j++) { tile[(t % 16u + 16u * j) * 4u + t / 16u] = found[j]; }
        workgroupBarrier();
        keep_best((row * p.heads + head) * p.blocks, min(HEADS, p.heads - head), first, last, t);
        workgroupBarrier();
      }
    }
    if (p.has_weights == 1u) {
      tile[t] = sums;
      workgroupBarrier();
      keep_best(row * p.blocks, 1u, first, last, t);
      workgroupBarrier();
    }
  }
}

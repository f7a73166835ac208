// choose_positions: the indexes of a row's last `local` blocks and of the best of the others, ascending, then NONE. The
// first of equal scores is chosen.
//
//   binding 0  scores storage, read        f32 (rows, groups · blocks), read as bits
//   binding 1  batch  storage, read        see batch.ts
//   binding 2  chosen storage, read_write  u32 (rows, groups · count)
//   binding 3  p      uniform              Params
//   dispatch   (groups, rows, 1), 256 threads each
//   oracle     src/engine/backends/cpu/choose.ts; tolerance 0
struct Params {
  groups: u32,
  count: u32,
  block: u32, // positions of a block
  blocks: u32, // in the longest context
  local: u32,
  closed: u32, // 1: without the row's own block unless it ends there
}
@group(0) @binding(0) var<storage, read> scores: array<u32>;
@group(0) @binding(1) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> chosen: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;
const WG: u32 = 256u;
const NONE: u32 = 0xffffffffu;
const INFINITE: u32 = 0xff800000u; // rank of infinity
var<workgroup> counts: array<atomic<u32>, 256>;
var<workgroup> sums: array<vec2<u32>, 256>;
var<workgroup> picked: vec2<u32>;

/// A number that is larger for larger scores; both zeros have the same.
fn rank_of(bits: u32) -> u32 {
  if (bits == 0x80000000u) { return bits; }
  return select(bits | 0x80000000u, ~bits, bits >> 31u == 1u);
}

/// The rank of block `i` of `n`, whose scores begin at `base`.
fn rank_at(base: u32, i: u32, n: u32) -> u32 {
  if (i + p.local >= n) { return INFINITE; }
  return rank_of(scores[base + i]);
}

/// Inclusive prefix sum of the threads' values.
fn sum_to(place: u32, value: vec2<u32>) -> vec2<u32> {
  sums[place] = value;
  workgroupBarrier();
  for (var step = 1u; step < WG; step *= 2u) {
    var sum = sums[place];
    if (place >= step) { sum += sums[place - step]; }
    workgroupBarrier();
    sums[place] = sum;
    workgroupBarrier();
  }
  return sums[place];
}

/// The rank of the `count`th best block, and how many blocks of that rank are among the best.
fn least_rank(base: u32, n: u32, t: u32) -> vec2<u32> {
  var known = 0u;
  var count = p.count;
  for (var i = 0u; i < 4u; i++) {
    let shift = 24u - 8u * i;
    atomicStore(&counts[t], 0u);
    workgroupBarrier();
    for (var at = t; at < n; at += WG) {
      let rank = rank_at(base, at, n);
      let is_candidate = i == 0u || rank >> ((shift + 8u) % 32u) == known >> ((shift + 8u) % 32u);
      if (is_candidate) { atomicAdd(&counts[(rank >> shift) & 255u], 1u); }
    }
    workgroupBarrier();
    let own = atomicLoad(&counts[t]);
    let reached = sum_to(255u - t, vec2<u32>(own, 0u)).x; // scores with this digit or a larger one
    if (reached >= count && reached - own < count) { picked = vec2<u32>(t, count - (reached - own)); }
    let pick = workgroupUniformLoad(&picked);
    known |= pick.x << shift;
    count = pick.y;
  }
  return vec2<u32>(known, count);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let cell = batch[1u + 3u * group.y].z;
  let n = select(cell / p.block + 1u, (cell + 1u) / p.block, p.closed == 1u);
  let list = group.y * p.groups + group.x;
  let to = list * p.count;
  if (n <= p.count) {
    for (var i = t; i < p.count; i += WG) { chosen[to + i] = select(NONE, i, i < n); }
    return;
  }
  let base = list * p.blocks;
  let least = least_rank(base, n, t);
  // Each thread handles consecutive blocks, so that the chosen ones stay in order.
  let each = (n + WG - 1u) / WG;
  let begin = min(t * each, n);
  let end = min(begin + each, n);
  var own = vec2<u32>(); // numbers of blocks above the least chosen rank, and equal to it
  for (var i = begin; i < end; i++) {
    let rank = rank_at(base, i, n);
    own += vec2<u32>(select(0u, 1u, rank > least.x), select(0u, 1u, rank == least.x));
  }
  var before = sum_to(t, own) - own;
  for (var i = begin; i < end; i++) {
    let rank = rank_at(base, i, n);
    let place = to + before.x + min(before.y, least.y);
    let is_equal = rank == least.x;
    if (rank > least.x || (is_equal && before.y < least.y)) { chosen[place] = i; }
    before += vec2<u32>(select(0u, 1u, rank > least.x), select(0u, 1u, is_equal));
  }
}

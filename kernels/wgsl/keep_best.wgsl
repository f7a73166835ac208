// keep_best: the best of 1,024 tokens in a workgroup's memory, best first, spliced into the top-k kernels. Runs of
// `keep` are sorted bitonically, half of them descending and half ascending; then each descending run meets an
// ascending one, the better of every pair stays, and these are sorted again (A. Shanbhag, H. Pirk and S. Madden,
// "Efficient Top-K Query Processing on GPUs", 2018). For keep = 1 that is a plain tournament.
//
// A token is its logit's bits in ascending order, so that larger is likelier, and its id; equal logits are ordered by
// id.

const LEN: u32 = 1024u;
const WG: u32 = 256u;
/// No token: worse than every other.
const NONE: vec2<u32> = vec2<u32>(0u, 0xffffffffu);
var<workgroup> tokens: array<vec2<u32>, 1024>;

fn better(a: vec2<u32>, b: vec2<u32>) -> bool {
  return a.x > b.x || (a.x == b.x && a.y < b.y);
}

/// Puts the pairs `apart` elements apart in order, those before `falling` the better first: by halves of `size`
/// elements in turn where that is not 0.
fn order_pairs(count: u32, apart: u32, size: u32, falling: u32, t: u32) {
  for (var pair = t; pair < count / 2u; pair += WG) {
    let i = (pair / apart) * 2u * apart + pair % apart;
    let falls = select(i < falling, (i & size) == 0u, size != 0u);
    let a = tokens[i];
    let b = tokens[i + apart];
    if (better(a, b) != falls) {
      tokens[i] = b;
      tokens[i + apart] = a;
    }
  }
}

/// Leaves the `keep` best in the first elements; keep: a power of two, at most 512.
fn keep_best(keep: u32, t: u32) {
  for (var size = 2u; size <= keep; size *= 2u) {
    for (var apart = size / 2u; apart > 0u; apart /= 2u) {
      workgroupBarrier();
      order_pairs(LEN, apart, select(size, 0u, size == keep), LEN / 2u, t);
    }
  }
  for (var count = LEN / 2u; count >= keep; count /= 2u) {
    workgroupBarrier();
    for (var i = t; i < count; i += WG) {
      if (better(tokens[i + count], tokens[i])) { tokens[i] = tokens[i + count]; }
    }
    // the last remaining run descends; before, the first half of the runs does
    let falling = select(count / 2u, count, count == keep);
    for (var apart = keep / 2u; apart > 0u; apart /= 2u) {
      workgroupBarrier();
      order_pairs(count, apart, 0u, falling, t);
    }
  }
  workgroupBarrier();
}

// reach: the keys that a row sees, spliced into the attention kernels for many rows.

/// The keys of a row: cells `start` … `to − 1`, and its own cell, relative to `base`, the row of keys at which its
/// sequence begins.
struct Reach { base: u32, start: u32, to: u32, own: u32 }

fn reach_of(row: u32) -> Reach {
  if (p.ctx_len == 0u) {
    let sequence = batch[2u + 3u * row]; // first row, end
    let own = row - sequence.x;
    let end = sequence.y - sequence.x;
    if (p.spans == 1u) {
      let first = batch[1u + 3u * sequence.x].z; // the cell of the sequence's first row
      let before = max(batch[2u + 3u * row].w, first) - first;
      return Reach(sequence.x, before, min(end, batch[3u + 3u * row].w - first), own);
    }
    if (p.window == 0u) { return Reach(sequence.x, 0u, end, own); }
    let far = p.window / 2u;
    return Reach(sequence.x, own - min(own, far), min(end, own + far + 1u), own);
  }
  let at = batch[1u + 3u * row]; // token, slot, cell
  let next = at.z + 1u;
  let end = select(next, batch[3u + 3u * row].w, p.spans == 1u);
  let base = at.y * p.ctx_len;
  if (p.chunked == 1u) { return Reach(base, at.z - at.z % p.window, end, at.z); }
  return Reach(base, select(0u, next - min(next, p.window), p.window > 0u), end, at.z);
}

/// The keys of the rows `begin` … `end − 1` of a sequence.
fn reach_of_all(begin: u32, end: u32) -> Reach {
  var all = reach_of(begin);
  all.to = reach_of(end - 1u).to;
  // The ranges of rows rise, except of spans without a cache.
  for (var row = begin; row < end && p.ctx_len == 0u && p.spans == 1u; row++) {
    let reach = reach_of(row);
    all.start = min(all.start, reach.start);
    all.to = max(all.to, reach.to);
  }
  return all;
}

/// The end of the sequence of `row`, at most `last`.
fn sequence_end(row: u32, last: u32) -> u32 {
  let base = reach_of(row).base;
  for (var end = row + 1u; end < last; end++) {
    if (reach_of(end).base != base) { return end; }
  }
  return last;
}

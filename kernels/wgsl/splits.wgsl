// splits: how a row's context is split among workgroups, as in splits.ts, spliced into the kernels that make and join
// the parts. It depends on the row alone, so that its bits do not depend on other rows.

/// The number of positions that a row at `position` attends to.
fn seen_from(position: u32) -> u32 {
  if (p.chunked == 1u) { return position % p.window + 1u; }
  return select(position + 1u, min(position + 1u, p.window), p.window > 0u);
}

/// Positions of each split of `seen`, a multiple of 64.
fn split_len(seen: u32) -> u32 {
  if (seen <= p.whole_len) { return p.whole_len; }
  return max(p.least_len, ((seen + p.splits - 1u) / p.splits + 63u) / 64u * 64u);
}

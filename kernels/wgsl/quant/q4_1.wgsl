// q4_1: w = d · q + m. Layout: `block_q4_1` in ggml-common.h; nibbles as in q4_0.
const BLOCK_LEN: u32 = 32u;
const BLOCK_BYTES: u32 = 20u;

fn dequant8(block: u32, at: u32) -> Eight {
  let d = half_at(block);
  let m = half_at(block + 2u);
  let i = block + 4u + (at & 15u);
  let shift = (at >> 4u) * 4u;
  let lo = (word_at(i) >> shift) & 0x0f0f0f0fu;
  let hi = (word_at(i + 4u) >> shift) & 0x0f0f0f0fu;
  return Eight(d * bytes_of(lo) + m, d * bytes_of(hi) + m);
}

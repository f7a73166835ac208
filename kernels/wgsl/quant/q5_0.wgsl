// q5_0: w = d · (q − 16). Layout: `block_q5_0` in ggml-common.h; nibbles as in q4_0, fifth bits in one word.
const BLOCK_LEN: u32 = 32u;
const BLOCK_BYTES: u32 = 22u;

fn dequant8(block: u32, at: u32) -> Eight {
  let d = half_at(block);
  let high = word_at(block + 2u) >> at;
  let i = block + 6u + (at & 15u);
  let shift = (at >> 4u) * 4u;
  let lo = ((word_at(i) >> shift) & 0x0f0f0f0fu) | (spread_bits(high) << 4u);
  let hi = ((word_at(i + 4u) >> shift) & 0x0f0f0f0fu) | (spread_bits(high >> 4u) << 4u);
  return Eight(d * (bytes_of(lo) - 16.0), d * (bytes_of(hi) - 16.0));
}

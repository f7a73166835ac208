// q4_0: w = d · (q − 8). Layout: `block_q4_0` in ggml-common.h; low nibbles are weights 0–15, high ones 16–31.
const BLOCK_LEN: u32 = 32u;
const BLOCK_BYTES: u32 = 18u;

fn dequant8(block: u32, at: u32) -> Eight {
  let d = half_at(block);
  let i = block + 2u + (at & 15u);
  let shift = (at >> 4u) * 4u;
  let lo = (word_at(i) >> shift) & 0x0f0f0f0fu;
  let hi = (word_at(i + 4u) >> shift) & 0x0f0f0f0fu;
  return Eight(d * (bytes_of(lo) - 8.0), d * (bytes_of(hi) - 8.0));
}

// q5_K: w = d · s · q − dmin · m, with s and m of 6 bits for each 32 weights; the fifth bits lie elsewhere. Layout:
// `block_q5_K` in ggml-common.h.
const BLOCK_LEN: u32 = 256u;
const BLOCK_BYTES: u32 = 176u;

fn dequant8(block: u32, at: u32) -> Eight {
  let scales = scale_min(block + 4u, at >> 5u);
  let s = half_at(block) * scales.x;
  let m = half_at(block + 2u) * scales.y;
  let i = block + 48u + (at >> 6u) * 32u + (at & 31u);
  let shift = ((at >> 5u) & 1u) * 4u;
  let high = block + 16u + (at & 31u);
  let bit = at >> 5u;
  let lo = ((word_at(i) >> shift) & 0x0f0f0f0fu) | (((word_at(high) >> bit) & 0x01010101u) << 4u);
  let hi = ((word_at(i + 4u) >> shift) & 0x0f0f0f0fu) | (((word_at(high + 4u) >> bit) & 0x01010101u) << 4u);
  return Eight(s * bytes_of(lo) - m, s * bytes_of(hi) - m);
}

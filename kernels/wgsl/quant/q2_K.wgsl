// q2_K: w = d · s · q − dmin · m, with s and m of 4 bits for each 16 weights. Layout: `block_q2_K` in ggml-common.h.
const BLOCK_LEN: u32 = 256u;
const BLOCK_BYTES: u32 = 84u;

fn dequant8(block: u32, at: u32) -> Eight {
  let scales = byte_at(block + (at >> 4u));
  let s = half_at(block + 80u) * f32(scales & 15u);
  let m = half_at(block + 82u) * f32(scales >> 4u);
  let i = block + 16u + (at >> 7u) * 32u + (at & 31u);
  let shift = ((at >> 5u) & 3u) * 2u;
  let lo = (word_at(i) >> shift) & 0x03030303u;
  let hi = (word_at(i + 4u) >> shift) & 0x03030303u;
  return Eight(s * bytes_of(lo) - m, s * bytes_of(hi) - m);
}

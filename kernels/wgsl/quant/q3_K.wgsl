// q3_K: w = d · (s − 32) · (q − 4), with s of 6 bits for each 16 weights; the third bits lie elsewhere. Layout:
// `block_q3_K` in ggml-common.h.
const BLOCK_LEN: u32 = 256u;
const BLOCK_BYTES: u32 = 110u;

fn dequant8(block: u32, at: u32) -> Eight {
  let group = at >> 4u;
  let low = (byte_at(block + 96u + (group & 7u)) >> ((group >> 3u) * 4u)) & 15u;
  let top = (byte_at(block + 104u + (group & 3u)) >> ((group >> 2u) * 2u)) & 3u;
  let s = half_at(block + 108u) * (f32(low | (top << 4u)) - 32.0);
  let i = block + 32u + (at >> 7u) * 32u + (at & 31u);
  let shift = ((at >> 5u) & 3u) * 2u;
  let mask = block + (at & 31u);
  let bit = at >> 5u;
  let lo = ((word_at(i) >> shift) & 0x03030303u) | (((word_at(mask) >> bit) & 0x01010101u) << 2u);
  let hi = ((word_at(i + 4u) >> shift) & 0x03030303u) | (((word_at(mask + 4u) >> bit) & 0x01010101u) << 2u);
  return Eight(s * (bytes_of(lo) - 4.0), s * (bytes_of(hi) - 4.0));
}

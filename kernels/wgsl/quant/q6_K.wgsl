// q6_K: w = d · s · (q − 32), with s of 8 bits for each 16 weights; the upper two bits lie elsewhere. Layout:
// `block_q6_K` in ggml-common.h.
const BLOCK_LEN: u32 = 256u;
const BLOCK_BYTES: u32 = 210u;

fn dequant8(block: u32, at: u32) -> Eight {
  let scale = i32(byte_at(block + 192u + (at >> 4u)) << 24u) >> 24u;
  let s = half_at(block + 208u) * f32(scale);
  let run = (at >> 5u) & 3u;
  let low = block + (at >> 7u) * 64u + (run & 1u) * 32u + (at & 31u);
  let low_shift = (run >> 1u) * 4u;
  let high = block + 128u + (at >> 7u) * 32u + (at & 31u);
  let high_shift = run * 2u;
  let lo = ((word_at(low) >> low_shift) & 0x0f0f0f0fu) | (((word_at(high) >> high_shift) & 0x03030303u) << 4u);
  let hi = ((word_at(low + 4u) >> low_shift) & 0x0f0f0f0fu) |
    (((word_at(high + 4u) >> high_shift) & 0x03030303u) << 4u);
  return Eight(s * (bytes_of(lo) - 32.0), s * (bytes_of(hi) - 32.0));
}

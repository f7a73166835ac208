// tq2_0: w = d · (q − 1), q of 2 bits. Layout: `block_tq2_0` in ggml-common.h.
const BLOCK_LEN: u32 = 256u;
const BLOCK_BYTES: u32 = 66u;

fn dequant8(block: u32, at: u32) -> Eight {
  let d = half_at(block + 64u);
  let i = block + (at >> 7u) * 32u + (at & 31u);
  let shift = ((at >> 5u) & 3u) * 2u;
  let lo = (word_at(i) >> shift) & 0x03030303u;
  let hi = (word_at(i + 4u) >> shift) & 0x03030303u;
  return Eight(d * (bytes_of(lo) - 1.0), d * (bytes_of(hi) - 1.0));
}

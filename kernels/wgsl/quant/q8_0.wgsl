// q8_0: w = d · q. Layout: `block_q8_0` in ggml-common.h.
const BLOCK_LEN: u32 = 32u;
const BLOCK_BYTES: u32 = 34u;

fn dequant8(block: u32, at: u32) -> Eight {
  let d = half_at(block);
  let i = block + 2u + at;
  return Eight(d * signed_bytes_of(word_at(i)), d * signed_bytes_of(word_at(i + 4u)));
}

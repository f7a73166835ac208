// iq1_s: w = d · (2 · s + 1) · (point ± ⅛), with grid points of eight weights. Layout: `block_iq1_s` in
// ggml-common.h; the grid (`iq1s_grid`) follows the matrix.
const BLOCK_LEN: u32 = 256u;
const BLOCK_BYTES: u32 = 50u;
const GRID_WORDS: u32 = 4096u;

fn dequant8(block: u32, at: u32) -> Eight {
  let group = at >> 5u;
  let word = byte_at(block + 34u + group * 2u) | (byte_at(block + 35u + group * 2u) << 8u);
  let scale = half_at(block) * f32(2u * ((word >> 12u) & 7u) + 1u);
  let shift = select(0.125, -0.125, (word >> 15u) == 1u);
  let high = (word >> (3u * ((at >> 3u) & 3u))) & 7u;
  let point = grid_word(GRID_WORDS) + (byte_at(block + 2u + (at >> 3u)) | (high << 8u)) * 2u;
  return Eight(scale * (signed_bytes_of(w[point]) + shift), scale * (signed_bytes_of(w[point + 1u]) + shift));
}

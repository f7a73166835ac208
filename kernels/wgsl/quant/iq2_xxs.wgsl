// iq2_xxs: w = d · (s + ½) / 4 · point · sign, with grid points of eight weights. Layout: `block_iq2_xxs` in
// ggml-common.h; the grid (`iq2xxs_grid`) follows the matrix.
const BLOCK_LEN: u32 = 256u;
const BLOCK_BYTES: u32 = 66u;
const GRID_WORDS: u32 = 512u;

fn dequant8(block: u32, at: u32) -> Eight {
  let group = block + 2u + (at >> 5u) * 8u;
  let part = (at >> 3u) & 3u;
  let word = word_at(group + 4u);
  let scale = half_at(block) * (f32(word >> 28u) + 0.5) * 0.25;
  let point = grid_word(GRID_WORDS) + byte_at(group + part) * 2u;
  return signed_point(w[point], w[point + 1u], even_signs((word >> (7u * part)) & 127u), scale);
}

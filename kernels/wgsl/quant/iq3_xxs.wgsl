// iq3_xxs: w = d · (s + ½) / 2 · point · sign, with grid points of four weights. Layout: `block_iq3_xxs` in
// ggml-common.h; the grid (`iq3xxs_grid`) follows the matrix.
const BLOCK_LEN: u32 = 256u;
const BLOCK_BYTES: u32 = 98u;
const GRID_WORDS: u32 = 256u;

fn dequant8(block: u32, at: u32) -> Eight {
  let part = at >> 3u;
  let word = word_at(block + 66u + (part >> 2u) * 4u);
  let scale = half_at(block) * (f32(word >> 28u) + 0.5) * 0.5;
  let signs = even_signs((word >> (7u * (part & 3u))) & 127u);
  let grid = grid_word(GRID_WORDS);
  let pick = block + 2u + part * 2u;
  return signed_point(w[grid + byte_at(pick)], w[grid + byte_at(pick + 1u)], signs, scale);
}

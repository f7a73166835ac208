// iq2_s: w = d · (s + ½) / 4 · point · sign, with grid points of eight weights. Layout: `block_iq2_s` in
// ggml-common.h; the grid (`iq2s_grid`) follows the matrix.
const BLOCK_LEN: u32 = 256u;
const BLOCK_BYTES: u32 = 82u;
const GRID_WORDS: u32 = 2048u;

fn dequant8(block: u32, at: u32) -> Eight {
  let part = at >> 3u;
  let s = (byte_at(block + 74u + (part >> 2u)) >> (4u * ((part >> 1u) & 1u))) & 15u;
  let scale = half_at(block) * (f32(s) + 0.5) * 0.25;
  let high = (byte_at(block + 66u + (part >> 2u)) >> (2u * (part & 3u))) & 3u;
  let point = grid_word(GRID_WORDS) + (byte_at(block + 2u + part) | (high << 8u)) * 2u;
  return signed_point(w[point], w[point + 1u], byte_at(block + 34u + part), scale);
}

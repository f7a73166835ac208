// iq3_s: w = d · (2 · s + 1) · point · sign, with grid points of four weights. Layout: `block_iq3_s` in
// ggml-common.h; the grid (`iq3s_grid`) follows the matrix.
const BLOCK_LEN: u32 = 256u;
const BLOCK_BYTES: u32 = 110u;
const GRID_WORDS: u32 = 512u;

fn dequant8(block: u32, at: u32) -> Eight {
  let part = at >> 3u;
  let s = (byte_at(block + 106u + (part >> 3u)) >> (4u * ((part >> 2u) & 1u))) & 15u;
  let scale = half_at(block) * f32(2u * s + 1u);
  let ninths = byte_at(block + 66u + (part >> 2u)) >> (2u * (part & 3u));
  let grid = grid_word(GRID_WORDS);
  let pick = block + 2u + part * 2u;
  let lo = w[grid + (byte_at(pick) | ((ninths & 1u) << 8u))];
  let hi = w[grid + (byte_at(pick + 1u) | ((ninths & 2u) << 7u))];
  return signed_point(lo, hi, byte_at(block + 74u + part), scale);
}

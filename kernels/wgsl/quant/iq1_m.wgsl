// iq1_m: w = d · (2 · s + 1) · (point ± ⅛), with grid points of eight weights; d lies in the highest bits of the
// scales. Layout: `block_iq1_m` in ggml-common.h; the grid (`iq1s_grid`) follows the matrix.
const BLOCK_LEN: u32 = 256u;
const BLOCK_BYTES: u32 = 56u;
const GRID_WORDS: u32 = 4096u;

fn dequant8(block: u32, at: u32) -> Eight {
  let part = at >> 3u;
  let low = word_at(block + 48u);
  let high = word_at(block + 52u);
  let d = ((low >> 12u) & 0xfu) | ((low >> 24u) & 0xf0u) | ((high >> 4u) & 0xf00u) | ((high >> 16u) & 0xf000u);
  let scales = select(low, high, part >= 16u) >> (16u * ((part >> 3u) & 1u));
  let scale = unpack2x16float(d).x * f32(2u * ((scales >> (3u * ((part >> 1u) & 3u))) & 7u) + 1u);
  let nibble = byte_at(block + 32u + (part >> 1u)) >> (4u * (part & 1u));
  let shift = select(0.125, -0.125, (nibble & 8u) == 8u);
  let point = grid_word(GRID_WORDS) + (byte_at(block + part) | ((nibble & 7u) << 8u)) * 2u;
  return Eight(scale * (signed_bytes_of(w[point]) + shift), scale * (signed_bytes_of(w[point + 1u]) + shift));
}

// q5_0: 32 weights: f16 d, 4 bytes of fifth bits, 16 bytes of nibbles. w = d · (q − 16)
#pragma once
#include "chunks.h"
// Fifth bits, 4 bytes of each of eight blocks, `step` bytes apart.
INL void fifth_bits(const u8 *p, int step, Unit *u) {
  const u32x8 words = {LOAD(u32, p), LOAD(u32, p + step), LOAD(u32, p + 2 * step), LOAD(u32, p + 3 * step),
                       LOAD(u32, p + 4 * step), LOAD(u32, p + 5 * step), LOAD(u32, p + 6 * step), LOAD(u32, p + 7 * step)};
  const u64x4 bits = chunk_bits((u8x32)words);
  UNROLL for (int j = 0; j < 4; j++) u->v[j] |= bit_mask64(bits[j]) & 16;
}
INL void unpack_q5_0(const u8 *p, const i8 *grid, Unit *u) {
  block_nibbles(p + 6, 22, u);
  fifth_bits(p + 2, 22, u);
  u->s = in_low8(halves8(p, 22));
  u->m = u->s * 16;
}

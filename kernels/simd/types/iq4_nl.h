// iq4_nl: as q4_0, but a nibble picks one of 16 levels. w = d · LEVELS[q]
#pragma once
#include "chunks.h"
#define IQ4_LEVELS \
  ((u8x16)(i8x16){-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113})
// Nibbles to levels; with AVX-512 they are shifted to 0 … 255.
INL void iq4_levels(Unit *u) {
#if defined(__AVX512VNNI__)
  UNROLL for (int j = 0; j < 4; j++) u->v[j] = look_up64(IQ4_LEVELS ^ 0x80, u->v[j]);
  u->m = u->s * 128;
#else
  UNROLL for (int j = 0; j < 4; j++) u->v[j] = look_up64(IQ4_LEVELS, u->v[j]);
  u->m = (f32x16){};
#endif
}
INL void unpack_iq4_nl(const u8 *p, const i8 *grid, Unit *u) {
  block_nibbles(p + 2, 18, u);
  u->s = in_low8(halves8(p, 18));
  iq4_levels(u);
}

// iq4_nl: as q4_0, but a nibble picks one of 16 levels. w = d · LEVELS[q]
#pragma once
#include "../unit.h"
#define IQ4_LEVELS \
  ((u8x16)(i8x16){-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113})
INL u8x64 iq4_levels(u8x64 n) {
  u8x32 h[2];
  STORE(h, n);
  u8x32 low = look_up(IQ4_LEVELS, h[0]), high = look_up(IQ4_LEVELS, h[1]);
  return JOIN32(low, high);
}
INL void unpack_iq4_nl(const u8 *p, const i8 *grid, Unit *u) {
  UNROLL for (int j = 0; j < 4; j++) u->v[j] = iq4_levels(nibbles2(p + j * 36 + 2, 18));
  u->s = in_low8(halves8(p, 18));
  finish_signed(u);
  order_unit(u);
}

// tq2_0: 256 weights of −1, 0, 1: 64 bytes of pairs of bits, f16 d. w = d · (q − 1)
#pragma once
#include "../unit.h"
INL void unpack_tq2_0(const u8 *p, const i8 *grid, Unit *u) {
  UNROLL for (int j = 0; j < 4; j++) {
    u8x32 q = LOAD(u8x32, p + j / 2 * 32) >> (j % 2 * 4);
    u8x32 low = q & 3, high = q >> 2 & 3;
    u->v[j] = JOIN32(low, high);
  }
  u->s = (f32x16){} + half(LOAD(u16, p + 64));
  u->m = u->s;
  order_unit(u);
}

// q8_0: 32 weights: f16 d, 32 bytes. w = d · q
#pragma once
#include "../unit.h"
INL void unpack_q8_0(const u8 *p, const i8 *grid, Unit *u) {
  UNROLL for (int j = 0; j < 4; j++) {
    const u8 *a = p + j * 68;
    u8x32 low = LOAD(u8x32, a + 2), high = LOAD(u8x32, a + 36);
    u->v[j] = JOIN32(low, high);
  }
  u->s = in_low8(halves8(p, 34));
  finish_signed(u);
  order_unit(u);
}

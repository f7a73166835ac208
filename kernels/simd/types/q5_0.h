// q5_0: 32 weights: f16 d, 4 bytes of fifth bits, 16 bytes of nibbles. w = d · (q − 16)
#pragma once
#include "../unit.h"
INL void unpack_q5_0(const u8 *p, const i8 *grid, Unit *u) {
  UNROLL for (int j = 0; j < 4; j++) {
    const u8 *a = p + j * 44, *b = a + 22;
    u8x32 low = bit_mask(LOAD(u32, a + 2)), high = bit_mask(LOAD(u32, b + 2));
    u->v[j] = nibbles2(a + 6, 22) | (JOIN32(low, high) & 16);
  }
  u->s = in_low8(halves8(p, 22));
  u->m = u->s * 16;
  order_unit(u);
}

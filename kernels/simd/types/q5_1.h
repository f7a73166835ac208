// q5_1: 32 weights: f16 d, f16 m, 4 bytes of fifth bits, 16 bytes of nibbles. w = d · q + m
#pragma once
#include "../unit.h"
INL void unpack_q5_1(const u8 *p, const i8 *grid, Unit *u) {
  UNROLL for (int j = 0; j < 4; j++) {
    const u8 *a = p + j * 48, *b = a + 24;
    u8x32 low = bit_mask(LOAD(u32, a + 4)), high = bit_mask(LOAD(u32, b + 4));
    u->v[j] = nibbles2(a + 8, 24) | (JOIN32(low, high) & 16);
  }
  u->s = in_low8(halves8(p, 24));
  u->m = -in_low8(halves8(p + 2, 24));
  order_unit(u);
}

// mxfp4: 32 weights: an exponent e, 16 bytes of nibbles that pick one of 16 levels. w = 2^(e − 128) · (LEVELS[q] − 12)
#pragma once
#include "../unit.h"
INL void unpack_mxfp4(const u8 *p, const i8 *grid, Unit *u) {
  const u8x16 levels = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
  UNROLL for (int j = 0; j < 4; j++) {
    u8x32 low = look_up(levels, nibbles(p + j * 34 + 1)), high = look_up(levels, nibbles(p + j * 34 + 18));
    u->v[j] = JOIN32(low, high);
  }
  u32x8 e;
  UNROLL for (int b = 0; b < 8; b++) e[b] = p[b * 17];
  u32x8 small = (u32x8)(e < 2);
  u32x8 bits = (small & (0x00200000u << (e & 1))) | (~small & ((e - 1) << 23)); // 2^-128 and 2^-127 have no exponent
  u->s = in_low8((f32x8)bits);
  u->m = u->s * 12;
  order_unit(u);
}

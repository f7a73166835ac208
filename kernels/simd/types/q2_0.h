// q2_0: 64 weights: f16 d, 16 bytes of pairs of bits, the lowest first. w = d · (q − 1)
#pragma once
#include "../unit.h"
INL void unpack_q2_0(const u8 *p, const i8 *grid, Unit *u) {
  f32x8 s;
  UNROLL for (int j = 0; j < 4; j++) {
    u8x16 q = LOAD(u8x16, p + j * 18 + 2);
    u8x16 a = q & 3, b = q >> 2 & 3, c = q >> 4 & 3, d = q >> 6;
    u8x32 ab = SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                       13, 29, 14, 30, 15, 31);
    u8x32 cd = SHUFFLE(c, d, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                       13, 29, 14, 30, 15, 31);
    u16x16 low = (u16x16)ab, high = (u16x16)cd;
    typedef u16 u16x32 VEC(64);
    u->v[j] = (u8x64)(u16x32)SHUFFLE(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26,
                                     11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    s[2 * j] = s[2 * j + 1] = half(LOAD(u16, p + j * 18));
  }
  u->s = in_low8(s);
  u->m = u->s;
  order_unit(u);
}

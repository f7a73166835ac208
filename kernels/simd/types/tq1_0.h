// tq1_0: 256 weights of −1, 0, 1: 48 bytes of five digits in base 3, 4 bytes of four, f16 d. w = d · (digit − 1)
#pragma once
#include "../unit.h"
INL void unpack_tq1_0(const u8 *p, const i8 *grid, Unit *u) {
  u8 *to = (u8 *)u->v;
  for (int digit = 0, power = 1; digit < 5; digit++, power *= 3) {
    for (int i = 0; i < 32; i++) to[digit * 32 + i] = (u8)(p[i] * power) * 3 >> 8;
    for (int i = 0; i < 16; i++) to[160 + digit * 16 + i] = (u8)(p[32 + i] * power) * 3 >> 8;
    if (digit < 4) for (int i = 0; i < 4; i++) to[240 + digit * 4 + i] = (u8)(p[48 + i] * power) * 3 >> 8;
  }
  u->s = (f32x16){} + half(LOAD(u16, p + 52));
  u->m = u->s;
  order_unit(u);
}

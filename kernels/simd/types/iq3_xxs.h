// iq3_xxs: 256 weights in groups of 32: f16 d, 64 bytes that name points of 4, then of each group a word of signs and
// scale. w = d · (s + ½) / 2 · point · sign
#pragma once
#include "grids.h"
INL void unpack_iq3_xxs(const u8 *p, const i8 *grid, Unit *u) {
  f32x8 s;
  for (int g = 0; g < 8; g++) {
    u32 word = LOAD(u32, p + 66 + g * 4), points[8];
    for (int i = 0; i < 8; i++) points[i] = LOAD(u32, grid + p[2 + g * 8 + i] * 4);
    STORE((u8 *)u->v + g * 32, signed_points(LOAD(u8x32, points), even_signs4(word)));
    s[g] = (0.5f + (word >> 28)) * 0.5f;
  }
  u->s = in_low8(s * half(LOAD(u16, p)));
  u->m = u->s * GRID_ZERO;
  order_unit(u);
}

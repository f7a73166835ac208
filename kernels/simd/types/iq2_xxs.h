// iq2_xxs: 256 weights in groups of 32: f16 d, then of each group 4 bytes that name points of 8, and a word of signs and
// scale. w = d · (s + ½) / 4 · point · sign
#pragma once
#include "grids.h"
INL void unpack_iq2_xxs(const u8 *p, const i8 *grid, Unit *u) {
  f32x8 s;
  for (int g = 0; g < 8; g++) {
    const u8 *from = p + 2 + g * 8;
    u32 word = LOAD(u32, from + 4);
    u64 points[4];
    for (int i = 0; i < 4; i++) points[i] = LOAD(u64, grid + from[i] * 8);
    STORE((u8 *)u->v + g * 32, signed_points(LOAD(u8x32, points), even_signs4(word)));
    s[g] = (0.5f + (word >> 28)) * 0.25f;
  }
  u->s = in_low8(s * half(LOAD(u16, p)));
  u->m = u->s * GRID_ZERO;
  order_unit(u);
}

// iq2_s: 256 weights in groups of 16: f16 d, 32 bytes that name points of 8, 32 bytes of signs, 8 bytes of high bits, 8 of
// scales. w = d · (s + ½) / 4 · point · sign
#pragma once
#include "iq2_xs.h"
INL void unpack_iq2_s(const u8 *p, const i8 *grid, Unit *u) {
  for (int g = 0; g < 8; g++) {
    u64 points[4];
    for (int i = 0; i < 4; i++) points[i] = LOAD(u64, grid + (p[2 + g * 4 + i] | (p[66 + g] >> (2 * i) & 3) << 8) * 8);
    STORE((u8 *)u->v + g * 32, signed_points(LOAD(u8x32, points), LOAD(u32, p + 34 + g * 4)));
  }
  u->s = scales_iq2(p + 74, half(LOAD(u16, p)));
  u->m = u->s * GRID_ZERO;
  order_unit(u);
}

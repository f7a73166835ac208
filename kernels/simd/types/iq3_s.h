// iq3_s: 256 weights in groups of 32: f16 d, 64 bytes that name points of 4, 8 bytes of ninth bits, 32 bytes of signs, 4
// bytes of scales. w = d · (2·s + 1) · point · sign
#pragma once
#include "grids.h"
INL void unpack_iq3_s(const u8 *p, const i8 *grid, Unit *u) {
  f32x8 s;
  for (int g = 0; g < 8; g++) {
    u32 points[8];
    for (int i = 0; i < 8; i++) points[i] = LOAD(u32, grid + (p[2 + g * 8 + i] | (p[66 + g] >> i & 1) << 8) * 4);
    STORE((u8 *)u->v + g * 32, signed_points(LOAD(u8x32, points), LOAD(u32, p + 74 + g * 4)));
    s[g] = (f32)(1 + 2 * (p[106 + g / 2] >> (4 * (g & 1)) & 15));
  }
  u->s = in_low8(s * half(LOAD(u16, p)));
  u->m = u->s * GRID_ZERO;
  order_unit(u);
}

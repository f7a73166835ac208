// iq4_xs: 256 weights in groups of 32: f16 d, 2 bytes with the high bits of the scales, 4 with their low nibbles, then
// nibbles as in iq4_nl. w = d · (s − 32) · LEVELS[q]
#pragma once
#include "iq4_nl.h"
INL void unpack_iq4_xs(const u8 *p, const i8 *grid, Unit *u) {
  UNROLL for (int j = 0; j < 4; j++) u->v[j] = iq4_levels(nibbles2(p + 8 + j * 32, 16));
  f32x8 s;
  UNROLL for (int g = 0; g < 8; g++) {
    int low = p[4 + g / 2] >> (4 * (g & 1)) & 15, high = LOAD(u16, p + 2) >> (2 * g) & 3;
    s[g] = (f32)((low | high << 4) - 32);
  }
  u->s = in_low8(s * half(LOAD(u16, p)));
  finish_signed(u);
  order_unit(u);
}

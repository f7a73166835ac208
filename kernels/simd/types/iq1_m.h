// iq1_m: 256 weights in groups of 16: 32 bytes that name points of 8, 32 nibbles with their high bits and the sign of
// the shift, 4 × 2 bytes of scales and a quarter of the f16 d each. w = d · (2·s + 1) · (point ± ⅛), as eighths
#pragma once
#include "iq1_s.h"
INL void unpack_iq1_m(const u8 *p, const i8 *grid, Unit *u) {
  u16 d = p[49] >> 4 | (p[51] >> 4) << 4 | (p[53] >> 4) << 8 | (p[55] >> 4) << 12;
  for (int i = 0; i < 32; i++) {
    int nibble = p[32 + i / 2] >> (4 * (i & 1)) & 15, point = p[i] | (nibble & 7) << 8;
    STORE((u8 *)u->v + i * 8, eighths(LOAD(u64, grid + point * 8), nibble >> 3));
  }
  f32x16 s;
  for (int g = 0; g < 16; g++) s[g] = (f32)(2 * (LOAD(u16, p + 48 + g / 4 * 2) >> (3 * (g % 4)) & 7) + 1);
  u->s = s * (half(d) * 0.125f);
  u->m = u->s * 9;
  order_unit(u);
}

// iq1_s: 256 weights in groups of 32: f16 d, 32 bytes that name points of 8, then of each group 2 bytes with their high
// bits, a scale and the sign of the shift. w = d · (2·s + 1) · (point ± ⅛), kept as eighths moved up by 9
#pragma once
#include "../unit.h"
INL u64 eighths(u64 point, int down) { // no byte passes 18, so none carries
  u8x8 v = (u8x8)point;
  v = v * 8 + (u8)(down ? 8 : 10);
  return (u64)v;
}
INL void unpack_iq1_s(const u8 *p, const i8 *grid, Unit *u) {
  f32x8 s;
  for (int g = 0; g < 8; g++) {
    u32 word = LOAD(u16, p + 34 + g * 2);
    for (int i = 0; i < 4; i++) {
      int point = p[2 + g * 4 + i] | (word >> (3 * i) & 7) << 8;
      STORE((u8 *)u->v + g * 32 + i * 8, eighths(LOAD(u64, grid + point * 8), word >> 15));
    }
    s[g] = (f32)(2 * (word >> 12 & 7) + 1);
  }
  u->s = in_low8(s * (half(LOAD(u16, p)) * 0.125f));
  u->m = u->s * 9;
  order_unit(u);
}

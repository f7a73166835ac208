// iq2_xs: 256 weights in groups of 16: f16 d, 32 × 2 bytes with indices of points of 8 and their signs, 8 bytes of
// scales. w = d · (s + ½) / 4 · point · sign
#pragma once
#include "grids.h"
// Scales of iq2_xs and iq2_s: 16 nibbles.
INL f32x16 scales_iq2(const u8 *p, f32 d) {
  u8x8 v = LOAD(u8x8, p);
  u8x8 low = v & 15, high = v >> 4;
  u8x16 each = SHUFFLE(low, high, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
  return (CONVERT(each, f32x16) + 0.5f) * (d * 0.25f);
}
INL void unpack_iq2_xs(const u8 *p, const i8 *grid, Unit *u) {
  const u8x32 seven = CONVERT(LOAD(u16x32, p + 2) >> 9, u8x32);
#define OF(c) POINT(LOAD(u16, p + 2 + 2 * (c)) & 511)
  SIGNED_POINTS(u, OF, even_signs(seven))
#undef OF
  u->s = scales_iq2(p + 66, half(LOAD(u16, p)));
  u->m = u->s * GRID_ZERO;
}

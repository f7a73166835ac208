// iq2_s: 256 weights in groups of 16: f16 d, 32 bytes with indices of points of 8, 32 bytes of signs, 8 bytes
// of high bits, 8 of scales. w = d · (s + ½) / 4 · point · sign
#pragma once
#include "iq2_xs.h"
INL void unpack_iq2_s(const u8 *p, const i8 *grid, Unit *u) {
  const u64x8 at = (u64x8)(CONVERT(LOAD(u8x32, p + 2), u16x32) | ninth_bits(CONVERT(LOAD(u8x8, p + 66), u64x8), 2));
#define OF(c) POINT((u16)(at[(c) / 4] >> (c) % 4 * 16))
  SIGNED_POINTS(u, OF, LOAD(u8x32, p + 34))
#undef OF
  u->s = scales_iq2(p + 74, half(LOAD(u16, p)));
  u->m = u->s * GRID_ZERO;
}

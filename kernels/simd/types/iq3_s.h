// iq3_s: 256 weights in groups of 32: f16 d, 64 bytes with indices of points of 4, 8 bytes of ninth bits, 32 bytes of
// signs, 4 bytes of scales. w = d · (2·s + 1) · point · sign
#pragma once
#include "grids.h"
INL void unpack_iq3_s(const u8 *p, const i8 *grid, Unit *u) {
  const u8x8 bits = LOAD(u8x8, p + 66), each = SHUFFLE(bits, bits >> 4, 0, 8, 1, 9, 2, 10, 3, 11);
  const u8x8 more = SHUFFLE(bits, bits >> 4, 4, 12, 5, 13, 6, 14, 7, 15);
  const u64x8 first = (u64x8)(CONVERT(LOAD(u8x32, p + 2), u16x32) | ninth_bits(CONVERT(each & 15, u64x8), 1));
  const u64x8 last = (u64x8)(CONVERT(LOAD(u8x32, p + 34), u16x32) | ninth_bits(CONVERT(more & 15, u64x8), 1));
#define PAIR(c) (((c) < 16 ? first : last)[(c) / 2 % 8] >> (c) % 2 * 32)
#define OF(c) POINTS((u16)PAIR(c), (u16)(PAIR(c) >> 16))
  SIGNED_POINTS(u, OF, LOAD(u8x32, p + 74))
#undef OF
#undef PAIR
  const u32x8 scales = (LOAD(u32, p + 106) >> (u32x8){0, 4, 8, 12, 16, 20, 24, 28}) & 15;
  u->s = in_low8(CONVERT((i32x8)(scales * 2 + 1), f32x8) * half(LOAD(u16, p)));
  u->m = u->s * GRID_ZERO;
}

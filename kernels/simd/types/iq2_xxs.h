// iq2_xxs: 256 weights in groups of 32: f16 d, then of each group 4 bytes with indices of points of 8, and a word of
// signs and scale. w = d · (s + ½) / 4 · point · sign
#pragma once
#include "grids.h"
INL void unpack_iq2_xxs(const u8 *p, const i8 *grid, Unit *u) {
  const u32x8 a = LOAD(u32x8, p + 2), b = LOAD(u32x8, p + 34), words = SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#define OF(c) POINT(p[2 + (c) / 4 * 8 + (c) % 4])
  SIGNED_POINTS(u, OF, even_signs28(words))
#undef OF
  u->s = in_low8((0.5f + CONVERT((i32x8)(words >> 28), f32x8)) * 0.25f * half(LOAD(u16, p)));
  u->m = u->s * GRID_ZERO;
}

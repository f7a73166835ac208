// iq3_xxs: 256 weights in groups of 32: f16 d, 64 bytes with indices of points of 4, then of each group a word of signs
// and scale. w = d · (s + ½) / 2 · point · sign
#pragma once
#include "grids.h"
INL void unpack_iq3_xxs(const u8 *p, const i8 *grid, Unit *u) {
  const u32x8 words = LOAD(u32x8, p + 66);
#define OF(c) POINTS(p[2 + 2 * (c)], p[3 + 2 * (c)])
  SIGNED_POINTS(u, OF, even_signs28(words))
#undef OF
  u->s = in_low8((0.5f + CONVERT((i32x8)(words >> 28), f32x8)) * 0.5f * half(LOAD(u16, p)));
  u->m = u->s * GRID_ZERO;
}

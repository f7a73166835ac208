// q4_k: 256 weights in groups of 32: f16 d, f16 dmin, 12 bytes of scales and minimums, 128 bytes of nibbles.
// w = d · s · q − dmin · m
#pragma once
#include "../unit.h"
INL void unpack_q4_k(const u8 *p, const i8 *grid, Unit *u) {
  nibbles_k4(p + 16, u);
  f32x8 s, m;
  scales_k4(p + 4, &s, &m);
  u->s = in_low8(s * half(LOAD(u16, p)));
  u->m = in_low8(m * half(LOAD(u16, p + 2)));
}

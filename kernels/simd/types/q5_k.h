// q5_k: 256 weights in groups of 32: as q4_k, with 32 bytes of fifth bits before the nibbles.
// w = d · s · q − dmin · m
#pragma once
#include "../unit.h"
INL void unpack_q5_k(const u8 *p, const i8 *grid, Unit *u) {
  u8x32 bits = LOAD(u8x32, p + 16);
  UNROLL for (int j = 0; j < 4; j++) {
    u8x32 v = LOAD(u8x32, p + 48 + j * 32);
    u8x32 low = (v & 15) | (bits >> (2 * j) & 1) << 4, high = v >> 4 | (bits >> (2 * j + 1) & 1) << 4;
    u->v[j] = JOIN32(low, high);
  }
  f32x8 s, m;
  scales_k4(p + 4, &s, &m);
  u->s = in_low8(s * half(LOAD(u16, p)));
  u->m = in_low8(m * half(LOAD(u16, p + 2)));
}

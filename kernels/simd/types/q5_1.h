// q5_1: 32 weights: f16 d, f16 m, 4 bytes of fifth bits, 16 bytes of nibbles. w = d · q + m
#pragma once
#include "q5_0.h"
INL void unpack_q5_1(const u8 *p, const i8 *grid, Unit *u) {
  block_nibbles(p + 8, 24, u);
  fifth_bits(p + 4, 24, u);
  u->s = in_low8(halves8(p, 24));
  u->m = -in_low8(halves8(p + 2, 24));
}

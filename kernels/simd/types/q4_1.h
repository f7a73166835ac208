// q4_1: 32 weights: f16 d, f16 m, 16 bytes of nibbles. w = d · q + m
#pragma once
#include "chunks.h"
INL void unpack_q4_1(const u8 *p, const i8 *grid, Unit *u) {
  block_nibbles(p + 4, 20, u);
  u->s = in_low8(halves8(p, 20));
  u->m = -in_low8(halves8(p + 2, 20));
}

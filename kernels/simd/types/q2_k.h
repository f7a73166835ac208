// q2_k: 256 weights in groups of 16: 16 bytes of scale and minimum, 64 bytes of pairs of bits, f16 d, f16 dmin.
// w = d · s · q − dmin · m
#pragma once
#include "chunks.h"
INL void unpack_q2_k(const u8 *p, const i8 *grid, Unit *u) {
  block_pairs(p + 16, u);
  u8x16 each = LOAD(u8x16, p);
  u->s = CONVERT(each & 15, f32x16) * half(LOAD(u16, p + 80));
  u->m = CONVERT(each >> 4, f32x16) * half(LOAD(u16, p + 82));
}

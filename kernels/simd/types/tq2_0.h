// tq2_0: 256 weights of −1, 0, 1: 64 bytes of pairs of bits, f16 d. w = d · (q − 1)
#pragma once
#include "chunks.h"
INL void unpack_tq2_0(const u8 *p, const i8 *grid, Unit *u) {
  block_pairs(p, u);
  u->s = (f32x16){} + half(LOAD(u16, p + 64));
  u->m = u->s;
}

// q4_0: 32 weights: f16 d, 16 bytes of nibbles. w = d · (q − 8)
#pragma once
#include "../unit.h"
INL void unpack_q4_0(const u8 *p, const i8 *grid, Unit *u) {
  UNROLL for (int j = 0; j < 4; j++) u->v[j] = nibbles2(p + j * 36 + 2, 18);
  u->s = in_low8(halves8(p, 18));
  u->m = u->s * 8;
}

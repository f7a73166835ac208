// q1_0: 128 weights of one size: f16 d, 16 bytes of signs. w = d · (2·bit − 1)
#pragma once
#include "chunks.h"
INL void unpack_q1_0(const u8 *p, const i8 *grid, Unit *u) {
  f32 d[2] = {half(LOAD(u16, p)), half(LOAD(u16, p + 18))};
  const u64x4 bits = chunk_bits(JOIN16(LOAD(u8x16, p + 2), LOAD(u8x16, p + 20)));
  UNROLL for (int j = 0; j < 4; j++) u->v[j] = bit_mask64(bits[j]) & 2;
  u->s = in_low8((f32x8){d[0], d[0], d[0], d[0], d[1], d[1], d[1], d[1]});
  u->m = u->s;
}

// q1_0: 128 weights of one size: f16 d, 16 bytes of signs. w = d · (2·bit − 1)
#pragma once
#include "../unit.h"
INL void unpack_q1_0(const u8 *p, const i8 *grid, Unit *u) {
  f32 d[2] = {half(LOAD(u16, p)), half(LOAD(u16, p + 18))};
  UNROLL for (int j = 0; j < 4; j++) {
    const u8 *bits = p + j / 2 * 18 + 2 + j % 2 * 8;
    u8x32 low = bit_mask(LOAD(u32, bits)), high = bit_mask(LOAD(u32, bits + 4));
    u->v[j] = JOIN32(low, high) & 2;
  }
  u->s = in_low8((f32x8){d[0], d[0], d[0], d[0], d[1], d[1], d[1], d[1]});
  u->m = u->s;
  order_unit(u);
}

// mxfp4: 32 weights: an exponent e, 16 bytes of nibbles that pick one of 16 levels. w = 2^(e − 128) · (LEVELS[q] − 12)
#pragma once
#include "chunks.h"
#define MXFP4_LEVELS ((u8x16){12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0})
INL void unpack_mxfp4(const u8 *p, const i8 *grid, Unit *u) {
  block_nibbles(p + 1, 17, u);
  UNROLL for (int j = 0; j < 4; j++) u->v[j] = look_up64(MXFP4_LEVELS, u->v[j]);
  const u32x8 e = {p[0], p[17], p[34], p[51], p[68], p[85], p[102], p[119]};
  u32x8 small = (u32x8)(e < 2);
  u32x8 bits = (small & (0x00200000u << (e & 1))) | (~small & ((e - 1) << 23)); // 2^-128 and 2^-127 have no exponent
  u->s = in_low8((f32x8)bits);
  u->m = u->s * 12;
}

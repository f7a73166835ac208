// q5_k: 256 weights in groups of 32: as q4_k, with 32 bytes of fifth bits before the nibbles.
// w = d · s · q − dmin · m
#pragma once
#include "../unit.h"
INL void unpack_q5_k(const u8 *p, const i8 *grid, Unit *u) {
#if !defined(__AVX512VNNI__)
  u8x32 bits = LOAD(u8x32, p + 16);
#endif
  nibbles_k4(p + 48, u);
  UNROLL for (int j = 0; j < 4; j++) {
#if defined(__AVX512VNNI__)
    u64x8 all = (u64x8){} + LOAD(u64, p + 16 + j * 8);
    u->v[j] |= ((u8x64)(all >> (u64x8){0, 1, 2, 3, 4, 5, 6, 7}) & 1) << 4;
#else
    u8x32 low = (bits >> (2 * j) & 1) << 4, high = (bits >> (2 * j + 1) & 1) << 4;
    u->v[j] |= JOIN32(low, high);
#endif
  }
  f32x8 s, m;
  scales_k4(p + 4, &s, &m);
  u->s = in_low8(s * half(LOAD(u16, p)));
  u->m = in_low8(m * half(LOAD(u16, p + 2)));
}
#if defined(__AVX512VNNI__)
// For two blocks.
INL void scales_q5_k(const u8 *p, const u8 *next, f32x16 *s, f32x16 *m) { scales_pair_k4(p, next, (f32x16){} + 1, s, m); }
#endif

// q4_0: 32 weights: f16 d, 16 bytes of nibbles. w = d · (q − 8)
#pragma once
#include "../unit.h"
#if defined(__AVX512VNNI__)
// Nibbles of eight blocks of 18 bytes as (8 blocks, 8 bytes), their first halves and their last; returns the scales.
INL f32x8 nibbles_q4_0(const u8 *p, u8x64 *first, u8x64 *last) {
  typedef u16 u16x32 VEC(64);
  typedef _Float16 half8_t VEC(16);
  u16x32 a = LOAD(u16x32, p), b = LOAD(u16x32, p + 72), c = LOAD(u16x32, p + 8), d = LOAD(u16x32, p + 80);
#define NIBBLES(a, b) \
  (u8x64) SHUFFLE(a, b, 1, 2, 3, 4, 10, 11, 12, 13, 19, 20, 21, 22, 28, 29, 30, 31, 33, 34, 35, 36, 42, 43, 44, 45, 51, 52, \
                  53, 54, 60, 61, 62, 63)
  *first = NIBBLES(a, b);
  *last = NIBBLES(c, d);
#undef NIBBLES
  return CONVERT((half8_t)SHUFFLE(a, b, 0, 9, 18, 27, 32, 41, 50, 59), f32x8);
}
INL void unpack_q4_0(const u8 *p, const i8 *grid, Unit *u) {
  u8x64 first, last;
  u->s = in_low8(nibbles_q4_0(p, &first, &last));
  u->m = u->s * 8;
  u->v[0] = first & 15;
  u->v[1] = last & 15;
  u->v[2] = first >> 4;
  u->v[3] = last >> 4;
}
#else
INL void unpack_q4_0(const u8 *p, const i8 *grid, Unit *u) {
  UNROLL for (int j = 0; j < 4; j++) u->v[j] = nibbles2(p + j * 36 + 2, 18);
  u->s = in_low8(halves8(p, 18));
  u->m = u->s * 8;
}
#endif

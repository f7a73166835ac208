// q4_k: 256 weights in groups of 32: f16 d, f16 dmin, 12 bytes of scales and minimums, 128 bytes of nibbles.
// w = d · s · q − dmin · m
#pragma once
#include "../unit.h"
INL void unpack_q4_k(const u8 *p, const i8 *grid, Unit *u) {
  f32x8 s, m;
  scales_k4(p + 4, &s, &m);
#if defined(__AVX512VNNI__)
  // High nibbles stay in place: 16 times the value with a 16th of the scale, which is exact.
  const u64 low = 0x0f0f0f0f0f0f0f0f, high = ~low;
  const u64x8 a = LOAD(u64x8, p + 16), b = LOAD(u64x8, p + 80), part = {low, high, low, high, low, high, low, high};
  u->v[0] = (u8x64)(SHUFFLE(a, b, 0, 0, 4, 4, 8, 8, 12, 12) & part);
  u->v[1] = (u8x64)(SHUFFLE(a, b, 1, 1, 5, 5, 9, 9, 13, 13) & part);
  u->v[2] = (u8x64)(SHUFFLE(a, b, 2, 2, 6, 6, 10, 10, 14, 14) & part);
  u->v[3] = (u8x64)(SHUFFLE(a, b, 3, 3, 7, 7, 11, 11, 15, 15) & part);
  s *= (f32x8){1, 0.0625f, 1, 0.0625f, 1, 0.0625f, 1, 0.0625f};
#else
  nibbles_k4(p + 16, u);
#endif
  u->s = in_low8(s * half(LOAD(u16, p)));
  u->m = in_low8(m * half(LOAD(u16, p + 2)));
}
#if defined(__AVX512VNNI__)
// For two blocks.
INL void scales_q4_k(const u8 *p, const u8 *next, f32x16 *s, f32x16 *m) {
  const f32x16 times = {1, 0.0625f, 1, 0.0625f, 1, 0.0625f, 1, 0.0625f, 1, 0.0625f, 1, 0.0625f, 1, 0.0625f, 1, 0.0625f};
  scales_pair_k4(p, next, times, s, m);
}
#endif

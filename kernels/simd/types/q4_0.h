// q4_0: 32 weights: f16 d, 16 bytes of nibbles. w = d · (q − 8)
#pragma once
#include "../unit.h"
#if defined(__AVX512VNNI__)
// Nibbles of eight blocks of 18 bytes, in the order of units; their halves.
INL u16x8 nibbles_q4_0(const u8 *p, Unit *u) {
  typedef u16 u16x32 VEC(64);
  u16x32 a = LOAD(u16x32, p), b = LOAD(u16x32, p + 20), c = LOAD(u16x32, p + 74), d = LOAD(u16x32, p + 80);
  u64x8 even = (u64x8)SHUFFLE(a, c, 1, 2, 3, 4, 5, 6, 7, 8, 19, 20, 21, 22, 23, 24, 25, 26, 32, 33, 34, 35, 36, 37, 38, 39,
                              50, 51, 52, 53, 54, 55, 56, 57);
  u64x8 odd = (u64x8)SHUFFLE(b, d, 0, 1, 2, 3, 4, 5, 6, 7, 18, 19, 20, 21, 22, 23, 24, 25, 38, 39, 40, 41, 42, 43, 44, 45,
                             56, 57, 58, 59, 60, 61, 62, 63);
  u8x64 low = (u8x64)SHUFFLE(even, odd, 0, 8, 2, 10, 4, 12, 6, 14), high = (u8x64)SHUFFLE(even, odd, 1, 9, 3, 11, 5, 13, 7, 15);
  u->v[0] = low & 15;
  u->v[1] = high & 15;
  u->v[2] = (u8x64)((u64x8)low >> 4) & 15;
  u->v[3] = (u8x64)((u64x8)high >> 4) & 15;
  u16x32 e = LOAD(u16x32, p + 72);
  return SHUFFLE(a, e, 0, 9, 18, 27, 32, 41, 50, 59);
}
INL void unpack_q4_0(const u8 *p, const i8 *grid, Unit *u) {
  typedef _Float16 half8_t VEC(16);
  u->s = in_low8(CONVERT((half8_t)nibbles_q4_0(p, u), f32x8));
  u->m = u->s * 8;
}
#else
INL void unpack_q4_0(const u8 *p, const i8 *grid, Unit *u) {
  UNROLL for (int j = 0; j < 4; j++) u->v[j] = nibbles2(p + j * 36 + 2, 18);
  u->s = in_low8(halves8(p, 18));
  u->m = u->s * 8;
}
#endif

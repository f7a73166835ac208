// q6_k: 256 weights in groups of 16: 128 bytes of nibbles, 64 bytes of pairs of high bits, 16 int8 scales, f16 d.
// w = d · s · (q − 32)
#pragma once
#include "../unit.h"
INL void unpack_q6_k(const u8 *p, const i8 *grid, Unit *u) {
#if defined(__AVX512VNNI__)
  const u64x8 a = LOAD(u64x8, p), b = LOAD(u64x8, p + 64), q = LOAD(u64x8, p + 128);
  // Shifts for the bits that come from other bytes
  const u64x8 down = {0, 0, 4, 4, 0, 0, 4, 4}, left = {4, 2, 0, 62, 4, 2, 0, 62};
#define WORDS(j) \
  const u64x8 low##j = SHUFFLE(a, b, j, j + 4, j, j + 4, j + 8, j + 12, j + 8, j + 12) >> down & 0x0f0f0f0f0f0f0f0f; \
  const u64x8 high##j = SHUFFLE(q, q, j, j, j, j, j + 4, j + 4, j + 4, j + 4); \
  u->v[j] = (u8x64)(low##j | (rotate_left(high##j, left) & 0x3030303030303030));
  WORDS(0) WORDS(1) WORDS(2) WORDS(3)
#undef WORDS
#else
  UNROLL for (int h = 0; h < 2; h++) {
    u8x32 a = LOAD(u8x32, p + h * 64), b = LOAD(u8x32, p + h * 64 + 32), q = LOAD(u8x32, p + 128 + h * 32);
    u8x32 v0 = (a & 15) | (q << 4 & 48), v1 = (b & 15) | (q << 2 & 48);
    u8x32 v2 = a >> 4 | (q & 48), v3 = b >> 4 | (q >> 2 & 48);
    u->v[2 * h] = JOIN32(v0, v1);
    u->v[2 * h + 1] = JOIN32(v2, v3);
  }
#endif
  u->s = CONVERT(LOAD(i8x16, p + 192), f32x16) * half(LOAD(u16, p + 208));
  u->m = u->s * 32;
}

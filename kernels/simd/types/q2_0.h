// q2_0: 64 weights: f16 d, 16 bytes of pairs of bits, the lowest first. w = d · (q − 1)
#pragma once
#include "chunks.h"
INL void unpack_q2_0(const u8 *p, const i8 *grid, Unit *u) {
  const u8x32 a = JOIN16(LOAD(u8x16, p + 2), LOAD(u8x16, p + 20)), b = JOIN16(LOAD(u8x16, p + 38), LOAD(u8x16, p + 56));
  const u16x32 words = (u16x32)JOIN32(a, b);
#define SPREAD(j) \
  { \
    u16x8 some = CHUNK_WORDS(words, j); \
    u64x8 v = CONVERT(some, u64x8); \
    v = (v | v << 24) & 0x000000ff000000ff; \
    v = (v | v << 12) & 0x000f000f000f000f; \
    u->v[j] = (u8x64)(v | v << 6) & 3; \
  }
  EACH_REGISTER(SPREAD)
#undef SPREAD
  const f32x4 d = half4((u16x4){LOAD(u16, p), LOAD(u16, p + 18), LOAD(u16, p + 36), LOAD(u16, p + 54)});
  u->s = in_low8(SHUFFLE(d, d, 0, 0, 1, 1, 2, 2, 3, 3));
  u->m = u->s;
}

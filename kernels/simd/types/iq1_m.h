// iq1_m: 256 weights in groups of 16: 32 bytes with indices of points of 8, 32 nibbles with their high bits and the
// sign of the shift, 4 × 2 bytes of scales and a quarter of the f16 d each. w = d · (2·s + 1) · (point ± ⅛), as eighths
#pragma once
#include "iq1_s.h"
INL void unpack_iq1_m(const u8 *p, const i8 *grid, Unit *u) {
  const u8x16 bits = LOAD(u8x16, p + 32), low = bits & 15, high = bits >> 4;
  const u8x32 each = SHUFFLE(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12,
                             28, 13, 29, 14, 30, 15, 31);
  const u16x32 wide = CONVERT(each, u16x32);
  const u64x8 at = (u64x8)(CONVERT(LOAD(u8x32, p), u16x32) | (wide & 7) << 8);
  typedef i16 i16x32 VEC(64);
  const i16x32 down = -(i16x32)(wide >> 3);
#define OF(c) POINT((u16)(at[(c) / 4] >> (c) % 4 * 16))
#define FILL(j) \
  { \
    i16x8 of = CHUNK_WORDS(down, j); \
    typedef i64 i64x8 VEC(64); \
    u->v[j] = eighths(CHUNKS(OF, j), (u64x8)CONVERT(of, i64x8)); \
  }
  EACH_REGISTER(FILL)
#undef FILL
#undef OF
  const u64 scales = LOAD(u64, p + 48);
  const u16 d = (scales >> 12 & 0xf) | (scales >> 24 & 0xf0) | (scales >> 36 & 0xf00) | (scales >> 48 & 0xf000);
  const u16x4 four = LOAD(u16x4, p + 48);
  const u16x16 sixteen = SHUFFLE(four, four, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  const i32x16 s = CONVERT(sixteen, i32x16) >> (i32x16){0, 3, 6, 9, 0, 3, 6, 9, 0, 3, 6, 9, 0, 3, 6, 9};
  u->s = CONVERT((s & 7) * 2 + 1, f32x16) * (half(d) * 0.125f);
  u->m = u->s * 9;
}

// nvfp4: 64 weights in groups of 16: 4 scales of 8 bits, 32 bytes of nibbles that pick one of 16 levels, of each group
// low nibbles first. w = scale / 2 · (LEVELS[q] − 12)
#pragma once
#include "mxfp4.h"
typedef u32 u32x16 VEC(64);
INL f32x16 half_scales(u8x16 codes) { // 4 bits of exponent, 3 of mantissa; ignores the sign; 0x7f is NaN
  const u32x16 code = CONVERT(codes, u32x16), e = code >> 3 & 15, m = code & 7;
  const f32x16 normal = (f32x16)((e + 119) << 23 | m << 20), small = CONVERT((i32x16)m, f32x16) * 0.0009765625f;
  const i32x16 is_small = e == 0, is_wrong = code == 0x7f;
  return (f32x16)(((is_small & (i32x16)small) | (~is_small & (i32x16)normal)) & ~is_wrong);
}
INL void unpack_nvfp4(const u8 *p, const i8 *grid, Unit *u) {
#define SIXTEEN(i) LOAD(u64, p + (i) / 4 * 36 + 4 + (i) % 4 * 8) // nibbles of 16 weights
#if defined(__AVX512VNNI__)
  const u8x64 first = (u8x64)(u64x8){SIXTEEN(0), SIXTEEN(2), SIXTEEN(4), SIXTEEN(6), SIXTEEN(8), SIXTEEN(10), SIXTEEN(12), SIXTEEN(14)};
  const u8x64 last = (u8x64)(u64x8){SIXTEEN(1), SIXTEEN(3), SIXTEEN(5), SIXTEEN(7), SIXTEEN(9), SIXTEEN(11), SIXTEEN(13), SIXTEEN(15)};
  u->v[0] = first & 15;
  u->v[1] = first >> 4;
  u->v[2] = last & 15;
  u->v[3] = last >> 4;
#else
  const u64x8 by = {0, 4, 0, 4, 0, 4, 0, 4};
#define FILL(j) \
  { \
    const u64x4 q = LOAD(u64x4, p + j * 36 + 4); \
    u->v[j] = (u8x64)(SHUFFLE(q, q, 0, 0, 1, 1, 2, 2, 3, 3) >> by) & 15; \
  }
  EACH_REGISTER(FILL)
#undef FILL
#endif
#undef SIXTEEN
  UNROLL for (int j = 0; j < 4; j++) u->v[j] = look_up64(MXFP4_LEVELS, u->v[j]);
  u->s = half_scales((u8x16)(u32x4){LOAD(u32, p), LOAD(u32, p + 36), LOAD(u32, p + 72), LOAD(u32, p + 108)});
  u->m = u->s * 12;
}

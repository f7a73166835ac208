// q3_k: 256 weights in groups of 16: 32 bytes of third bits, 64 bytes of pairs of bits, 12 bytes of scales, f16 d.
// w = d · (s − 32) · (q − 4)
#pragma once
#include "chunks.h"
INL void unpack_q3_k(const u8 *p, const i8 *grid, Unit *u) {
  block_pairs(p + 32, u);
#if defined(__AVX512VNNI__)
  const u64x4 bits = LOAD(u64x4, p);
  const u64x8 left = {2, 1, 0, 63, 62, 61, 60, 59}; // shifts for the bits that come from other bytes
#define HIGH(j) u->v[j] |= (u8x64)rotate_left(SHUFFLE(bits, bits, j, j, j, j, j, j, j, j), left) & 4;
  EACH_REGISTER(HIGH)
#undef HIGH
#else
  u8x32 bits = LOAD(u8x32, p);
  UNROLL for (int j = 0; j < 4; j++) {
    u8x32 low = (bits >> (2 * j) & 1) << 2, high = (bits >> (2 * j + 1) & 1) << 2;
    u->v[j] |= JOIN32(low, high);
  }
#endif
  u32 a = LOAD(u32, p + 96), b = LOAD(u32, p + 100), c = LOAD(u32, p + 104);
  u32 s[4] = {(a & 0x0f0f0f0f) | (c & 0x03030303) << 4, (b & 0x0f0f0f0f) | (c >> 2 & 0x03030303) << 4,
              (a >> 4 & 0x0f0f0f0f) | (c >> 4 & 0x03030303) << 4, (b >> 4 & 0x0f0f0f0f) | (c >> 6 & 0x03030303) << 4};
  u->s = (CONVERT(LOAD(u8x16, s), f32x16) - 32) * half(LOAD(u16, p + 108));
  u->m = u->s * 4;
}

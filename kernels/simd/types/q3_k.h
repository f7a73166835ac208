// q3_k: 256 weights in groups of 16: 32 bytes of third bits, 64 bytes of pairs of bits, 12 bytes of scales, f16 d.
// w = d · (s − 32) · (q − 4)
#pragma once
#include "../unit.h"
INL void unpack_q3_k(const u8 *p, const i8 *grid, Unit *u) {
  u8x32 bits = LOAD(u8x32, p);
  UNROLL for (int j = 0; j < 4; j++) {
    u8x32 q = LOAD(u8x32, p + 32 + j / 2 * 32) >> (j % 2 * 4);
    u8x32 low = (q & 3) | (bits >> (2 * j) & 1) << 2, high = (q >> 2 & 3) | (bits >> (2 * j + 1) & 1) << 2;
    u->v[j] = JOIN32(low, high);
  }
  u32 a = LOAD(u32, p + 96), b = LOAD(u32, p + 100), c = LOAD(u32, p + 104);
  u32 s[4] = {(a & 0x0f0f0f0f) | (c & 0x03030303) << 4, (b & 0x0f0f0f0f) | (c >> 2 & 0x03030303) << 4,
              (a >> 4 & 0x0f0f0f0f) | (c >> 4 & 0x03030303) << 4, (b >> 4 & 0x0f0f0f0f) | (c >> 6 & 0x03030303) << 4};
  u->s = (CONVERT(LOAD(u8x16, s), f32x16) - 32) * half(LOAD(u16, p + 108));
  u->m = u->s * 4;
  order_unit(u);
}

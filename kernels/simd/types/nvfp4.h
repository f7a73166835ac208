// nvfp4: 64 weights in groups of 16: 4 scales of 8 bits, 32 bytes of nibbles that pick one of 16 levels, of each group
// low nibbles first. w = scale / 2 · (LEVELS[q] − 12)
#pragma once
#include "../unit.h"
INL f32 half_scale(u8 code) { // 4 bits of exponent, 3 of mantissa; ignores the sign; 0x7f is NaN
  u32 e = code >> 3 & 15, m = code & 7, bits = (e + 119) << 23 | m << 20;
  if (code == 0 || code == 0x7f) return 0;
  return e ? LOAD(f32, &bits) : m * 0.0009765625f;
}
INL void unpack_nvfp4(const u8 *p, const i8 *grid, Unit *u) {
  const u8x16 levels = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
  f32x16 s;
  UNROLL for (int j = 0; j < 4; j++) {
    const u8 *block = p + j * 36;
    u8x32 q = LOAD(u8x32, block + 4), low = q & 15, high = q >> 4;
    u8x32 a = SHUFFLE(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 32, 33, 34, 35, 36, 37, 38, 39, 8, 9, 10, 11, 12, 13, 14, 15, 40,
                      41, 42, 43, 44, 45, 46, 47);
    u8x32 b = SHUFFLE(low, high, 16, 17, 18, 19, 20, 21, 22, 23, 48, 49, 50, 51, 52, 53, 54, 55, 24, 25, 26, 27, 28, 29, 30,
                      31, 56, 57, 58, 59, 60, 61, 62, 63);
    u8x32 first = look_up(levels, a), second = look_up(levels, b);
    u->v[j] = JOIN32(first, second);
    for (int i = 0; i < 4; i++) s[4 * j + i] = half_scale(block[i]);
  }
  u->s = s;
  u->m = s * 12;
  order_unit(u);
}

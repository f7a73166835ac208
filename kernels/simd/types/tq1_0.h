// tq1_0: 256 weights of −1, 0, 1: 48 bytes of five digits in base 3, 4 bytes of four, f16 d. w = d · (digit − 1)
#pragma once
#include "../unit.h"
// Extracts the first base-3 digit of numbers scaled to 256, and keeps the remainder.
#define DIGIT(v) \
  ({ \
    const __typeof__(v) digit_ = -(__typeof__(v))((v) > 85) - (__typeof__(v))((v) > 170); \
    v *= 3; \
    digit_; \
  })
INL void unpack_tq1_0(const u8 *p, const i8 *grid, Unit *u) {
  u8x32 a = LOAD(u8x32, p), digits[8];
  u8x16 b = LOAD(u8x16, p + 32), halves[6];
  u8x16 c = (u8x16)(u32x4){LOAD(u32, p + 48)};
  c = (u8x16)SHUFFLE((u32x4)c, (u32x4)(c * 3), 0, 4, 0, 4); // each word holds three times the previous one
  const u8x16 nine = {1, 1, 1, 1, 1, 1, 1, 1, 9, 9, 9, 9, 9, 9, 9, 9};
  c *= nine;
  UNROLL for (int i = 0; i < 5; i++) digits[i] = DIGIT(a);
  UNROLL for (int i = 0; i < 5; i++) halves[i] = DIGIT(b);
  halves[5] = DIGIT(c);
  UNROLL for (int i = 0; i < 3; i++) digits[5 + i] = JOIN16(halves[2 * i], halves[2 * i + 1]);
  UNROLL for (int j = 0; j < 4; j++) u->v[j] = JOIN32(digits[2 * j], digits[2 * j + 1]);
  u->s = (f32x16){} + half(LOAD(u16, p + 52));
  u->m = u->s;
  order_unit(u);
}

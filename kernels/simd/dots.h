// dots: rows of weights times a few tokens, in place. For decode.
//
// One row after the other, so that memory is read as one stream. A row's sum does not depend on how many tokens share
// it: every token has the same sums in the same order.
#pragma once
#include "types.h"

#define DOTS_TOKENS 8 // at once

#define PAIR(v, a, b) SHUFFLE(v, v, a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b)
#define FOUR(v, a, b, c, d) SHUFFLE(v, v, a, a, a, a, b, b, b, b, c, c, c, c, d, d, d, d)

// Adds unit b of a row times one token: the product to acc, what its minimums take off to off.
INL void add_unit(int is_signed, int by16, const Unit *u, Packed x, i64 b, f32x16 acc[2], f32x16 *off) {
  f32x8 d = LOAD(f32x8, x.d + b * 8);
  f32x16 f;
  if (by16) {
    f = u->s * SHUFFLE(d, d, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    *off = FMA(u->m, LOAD(f32x16, x.sum16 + b * 16), *off);
  } else {
    f = in_low8(LOW8(u->s) * d);
    if (!is_signed) *off = in_low8(FMA(LOW8(u->m), LOAD(f32x8, x.sum32 + b * 8), LOW8(*off)));
  }
#define ADD(j) \
  { \
    f32x16 p = CONVERT(dot64(is_signed, u->v[j], LOAD(i8x64, x.q + b * UNIT + j * 64)), f32x16); \
    f32x16 s = by16 ? FOUR(f, 4 * j, 4 * j + 1, 4 * j + 2, 4 * j + 3) : PAIR(f, 2 * j, 2 * j + 1); \
    acc[j & 1] = FMA(p, s, acc[j & 1]); \
  }
  ADD(0) ADD(1) ADD(2) ADD(3)
#undef ADD
}
INL f32 total_of(int by16, const f32x16 acc[2], f32x16 off) {
  return sum16(acc[0] + acc[1]) - (by16 ? sum16(off) : sum8(LOW8(off)));
}

// One token, of the types that most files have: units stay in registers.
#if defined(__wasm__) // where each costs five times the bytes
#define COMMON(X) \
  X(q4_0, 2, 32, 18, 0, 0) X(q8_0, 8, 32, 34, SIGNED_UNITS, 0) X(q4_k, 12, 256, 144, 0, 0) X(q6_k, 14, 256, 210, 0, 1)
#else
#define COMMON(X) \
  X(q4_0, 2, 32, 18, 0, 0) X(q4_1, 3, 32, 20, 0, 0) X(q5_0, 6, 32, 22, 0, 0) X(q8_0, 8, 32, 34, SIGNED_UNITS, 0) \
  X(q2_k, 10, 256, 84, 0, 1) X(q3_k, 11, 256, 110, 0, 1) X(q4_k, 12, 256, 144, 0, 0) X(q5_k, 13, 256, 176, 0, 0) \
  X(q6_k, 14, 256, 210, 0, 1) X(iq4_nl, 20, 32, 18, SIGNED_UNITS, 0) X(iq4_xs, 23, 256, 136, SIGNED_UNITS, 0) \
  X(mxfp4, 39, 32, 17, 0, 0)
#endif
#define DEFINE(name, number, len, bytes, sgn, by16) \
  NOINL void dots_##name(f32 *y, const u8 *w, i64 row_bytes, const i8 *grid, Packed x, int n, int rows) { \
    for (int r = 0; r < rows; r++, w += row_bytes) { \
      f32x16 acc[2] = {{0}, {0}}, off = {0}; \
      Unit u; \
      i64 b = 0; \
      for (; b < n / UNIT; b++) { \
        unpack_##name(w + b * (UNIT / len) * bytes, grid, &u); \
        add_unit(sgn, by16, &u, x, b, acc, &off); \
      } \
      if (b * UNIT < n) { \
        unpack_unit(number, w, b, n, grid, &u); \
        add_unit(sgn, by16, &u, x, b, acc, &off); \
      } \
      y[r] = total_of(by16, acc, off); \
    } \
  }
COMMON(DEFINE)
#undef DEFINE

// A few tokens: each unit is unpacked once. y[t · stride + r]
INL void dots_many(int count, int is_signed, int by16, int type, f32 *y, i64 stride, const u8 *w, i64 row_bytes,
                   const i8 *grid, const Packed *x, int n, int rows) {
  for (int r = 0; r < rows; r++, w += row_bytes) {
    f32x16 acc[DOTS_TOKENS][2], off[DOTS_TOKENS];
    UNROLL for (int t = 0; t < count; t++) acc[t][0] = acc[t][1] = off[t] = (f32x16){0};
    for (i64 b = 0; b * UNIT < n; b++) {
      Unit u;
      unpack_unit(type, w, b, n, grid, &u);
      UNROLL for (int t = 0; t < count; t++) add_unit(is_signed, by16, &u, x[t], b, acc[t], &off[t]);
    }
    UNROLL for (int t = 0; t < count; t++) y[t * stride + r] = total_of(by16, acc[t], off[t]);
  }
}
#define DEFINE(name, count, sgn, by16) \
  NOINL void dots_##name(int type, f32 *y, i64 stride, const u8 *w, i64 row_bytes, const i8 *grid, const Packed *x, int n, \
                         int rows) { \
    dots_many(count, sgn, by16, type, y, stride, w, row_bytes, grid, x, n, rows); \
  }
DEFINE(1_by32, 1, 0, 0)
DEFINE(1_by16, 1, 0, 1)
DEFINE(4_by32, 4, 0, 0)
DEFINE(8_by32, 8, 0, 0)
DEFINE(4_by16, 4, 0, 1)
DEFINE(8_by16, 8, 0, 1)
#if SIGNED_UNITS
DEFINE(1_signed, 1, 1, 0)
DEFINE(4_signed, 4, 1, 0)
DEFINE(8_signed, 8, 1, 0)
#endif
#undef DEFINE

// `count` tokens, at most DOTS_TOKENS, times `rows` rows: y[t · stride + r].
NOINL void dots(int type, int count, f32 *y, i64 stride, const u8 *w, i64 row_bytes, const i8 *grid, const Packed *x,
                int n, int rows) {
  const TypeInfo t = type_info(type);
  if (count == 1) {
    switch (type) {
#define CASE(name, number, len, bytes, sgn, by16) \
  case number: dots_##name(y, w, row_bytes, grid, x[0], n, rows); return;
      COMMON(CASE)
#undef CASE
    }
#if SIGNED_UNITS
    if (t.is_signed) {
      dots_1_signed(type, y, stride, w, row_bytes, grid, x, n, rows);
      return;
    }
#endif
    if (t.by16) dots_1_by16(type, y, stride, w, row_bytes, grid, x, n, rows);
    else dots_1_by32(type, y, stride, w, row_bytes, grid, x, n, rows);
    return;
  }
  // Tokens that are not there are the last one again, whose sums go nowhere.
  int wide = count > 4 ? 8 : 4;
  Packed all[DOTS_TOKENS];
  for (int i = 0; i < wide; i++) all[i] = x[MIN(i, count - 1)];
  for (int r = 0; r < rows; r += PANEL_ROWS) {
    f32 out[DOTS_TOKENS * PANEL_ROWS];
    int some = MIN(PANEL_ROWS, rows - r);
    const u8 *from = w + r * row_bytes;
#if SIGNED_UNITS
    if (t.is_signed) (wide == 4 ? dots_4_signed : dots_8_signed)(type, out, PANEL_ROWS, from, row_bytes, grid, all, n, some);
    else
#endif
    if (t.by16) (wide == 4 ? dots_4_by16 : dots_8_by16)(type, out, PANEL_ROWS, from, row_bytes, grid, all, n, some);
    else (wide == 4 ? dots_4_by32 : dots_8_by32)(type, out, PANEL_ROWS, from, row_bytes, grid, all, n, some);
    for (int i = 0; i < count; i++)
      for (int k = 0; k < some; k++) y[i * stride + r + k] = out[i * PANEL_ROWS + k];
  }
}

// dots: rows of weights times a few tokens, in place. For decode.
//
// What is summed in float32 is the same for one token and for many: the whole product of a group of 32 weights, or of 16, is
// scaled and added to the sum of its place in a unit. So the bits of a row do not depend on its company. One token has
// those sums in the lanes of one register; of several tokens a register has two groups' sums of each token, and every
// weight is unpacked once.
#pragma once
#include "types.h"

#define DOTS_TOKENS 8 // at once

// Asks for what lies a page behind a unit of `bytes` in a stream of weights: a processor does so by itself only within a
// page. Where a unit takes as many bytes as it has weights the stream is as fast without.
INL void fetch_ahead(const u8 *p, int bytes) {
  if (bytes >= UNIT) return;
  UNROLL for (int i = 0; i < bytes; i += 64) __builtin_prefetch(p + AHEAD + i);
}

// --- one token ---

#define EVEN8(a, b) SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD8(a, b) SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define TWICE(v) SHUFFLE(v, v, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7)

// Products of a unit's eight groups of 32.
INL i32x8 products32(int is_signed, const Unit *u, const i8 *q) {
#if W == 16
  vi first = dot_add(0, (vi){}, u->v[0], LOAD(vs, q)), second = dot_add(0, (vi){}, u->v[2], LOAD(vs, q + 128));
  vi all = dot_add(0, first, u->v[1], LOAD(vs, q + 64)) + dot_add(0, second, u->v[3], LOAD(vs, q + 192));
  return EVEN8(all, all) + ODD8(all, all);
#elif W == 8
  const u8 *v = (const u8 *)u->v;
  i32x8 halves[2];
  UNROLL for (int half = 0; half < 2; half++) {
    i32x8 pairs[2];
    UNROLL for (int i = 0; i < 2; i++) {
      const int at = half * 128 + i * 64;
      i32x8 a = dot_add(is_signed, (vi){}, LOAD(vu, v + at), LOAD(vs, q + at));
      i32x8 b = dot_add(is_signed, (vi){}, LOAD(vu, v + at + 32), LOAD(vs, q + at + 32));
      pairs[i] = SHUFFLE(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + SHUFFLE(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    }
    halves[half] = SHUFFLE(pairs[0], pairs[1], 0, 2, 8, 10, 4, 6, 12, 14) + SHUFFLE(pairs[0], pairs[1], 1, 3, 9, 11, 5, 7, 13, 15);
  }
  return SHUFFLE(halves[0], halves[1], 0, 1, 2, 3, 8, 9, 10, 11) + SHUFFLE(halves[0], halves[1], 4, 5, 6, 7, 12, 13, 14, 15);
#else
  const u8 *v = (const u8 *)u->v;
  i32x4 pairs[4];
  UNROLL for (int pair = 0; pair < 4; pair++) {
    i32x4 sums[2];
    UNROLL for (int g = 0; g < 2; g++) {
      const int at = pair * 64 + g * 32;
      sums[g] = dot_add_any(is_signed, (vi){}, LOAD(vu, v + at), LOAD(vs, q + at));
      sums[g] = dot_add_any(is_signed, sums[g], LOAD(vu, v + at + 16), LOAD(vs, q + at + 16));
    }
    pairs[pair] = SHUFFLE(sums[0], sums[1], 0, 2, 4, 6) + SHUFFLE(sums[0], sums[1], 1, 3, 5, 7);
  }
  i32x4 low = SHUFFLE(pairs[0], pairs[1], 0, 2, 4, 6) + SHUFFLE(pairs[0], pairs[1], 1, 3, 5, 7);
  i32x4 high = SHUFFLE(pairs[2], pairs[3], 0, 2, 4, 6) + SHUFFLE(pairs[2], pairs[3], 1, 3, 5, 7);
  return SHUFFLE(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}
// Of its sixteen groups of 16.
INL i32x16 products16(const Unit *u, const i8 *q) {
#if W == 16
  vi a = dot_add(0, (vi){}, u->v[0], LOAD(vs, q)), b = dot_add(0, (vi){}, u->v[2], LOAD(vs, q + 128));
  a = dot_add(0, a, u->v[1], LOAD(vs, q + 64));
  b = dot_add(0, b, u->v[3], LOAD(vs, q + 192));
  return SHUFFLE(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30) +
         SHUFFLE(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
#elif W == 8
  const u8 *v = (const u8 *)u->v;
  i32x8 halves[2];
  UNROLL for (int half = 0; half < 2; half++) {
    i32x8 pairs[2];
    UNROLL for (int i = 0; i < 2; i++) {
      const int at = half * 128 + i * 64;
      i32x8 a = dot_add(0, (vi){}, LOAD(vu, v + at), LOAD(vs, q + at));
      i32x8 b = dot_add(0, (vi){}, LOAD(vu, v + at + 32), LOAD(vs, q + at + 32));
      pairs[i] = SHUFFLE(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + SHUFFLE(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    }
    i32x8 all = SHUFFLE(pairs[0], pairs[1], 0, 2, 8, 10, 4, 6, 12, 14) + SHUFFLE(pairs[0], pairs[1], 1, 3, 9, 11, 5, 7, 13, 15);
    halves[half] = SHUFFLE(all, all, 0, 4, 1, 5, 2, 6, 3, 7);
  }
  return JOIN8(halves[0], halves[1]);
#else
  const u8 *v = (const u8 *)u->v;
  i32x4 each[4];
  UNROLL for (int i = 0; i < 4; i++) {
    i32x4 pairs[2];
    UNROLL for (int pair = 0; pair < 2; pair++) {
      const int at = i * 64 + pair * 32;
      i32x4 a = dot_add(0, (vi){}, LOAD(vu, v + at), LOAD(vs, q + at));
      i32x4 b = dot_add(0, (vi){}, LOAD(vu, v + at + 16), LOAD(vs, q + at + 16));
      pairs[pair] = SHUFFLE(a, b, 0, 2, 4, 6) + SHUFFLE(a, b, 1, 3, 5, 7);
    }
    each[i] = SHUFFLE(pairs[0], pairs[1], 0, 2, 4, 6) + SHUFFLE(pairs[0], pairs[1], 1, 3, 5, 7);
  }
  i32x8 low = SHUFFLE(each[0], each[1], 0, 1, 2, 3, 4, 5, 6, 7), high = SHUFFLE(each[2], each[3], 0, 1, 2, 3, 4, 5, 6, 7);
  return JOIN8(low, high);
#endif
}

// Adds unit b of a row times one token; its groups' sums at last.
typedef f32x8 Sums_0;
INL Sums_0 add_unit_0(int is_signed, const Unit *u, Packed x, i64 b, Sums_0 sums) {
  sums = FMA(CONVERT(products32(is_signed, u, x.q + b * UNIT), f32x8), LOW8(u->s) * LOAD(f32x8, x.d + b * 8), sums);
  f32x8 m = LOW8(u->m), offsets = LOAD(f32x8, x.sum32 + b * 8);
  return is_signed ? sums : FMA(-m, offsets, sums);
}
INL f32 total_0(Sums_0 sums) { return sum8(sums); }
typedef f32x16 Sums_1;
INL Sums_1 add_unit_1(int is_signed, const Unit *u, Packed x, i64 b, Sums_1 sums) {
  f32x8 d = LOAD(f32x8, x.d + b * 8);
  sums = FMA(CONVERT(products16(u, x.q + b * UNIT), f32x16), u->s * TWICE(d), sums);
  f32x16 m = u->m, offsets = LOAD(f32x16, x.sum16 + b * 16);
  return FMA(-m, offsets, sums);
}
INL f32 total_1(Sums_1 sums) { return sum16(sums); }

// Of the types that most files have units stay in registers.
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
  NOINL f32 dot_##name(const u8 *w, const i8 *grid, Packed x, int n) { \
    Sums_##by16 sums = {0}; \
    Unit u; \
    i64 b = 0; \
    for (; b < n / UNIT; b++) { \
      fetch_ahead(w + b * (UNIT / len) * bytes, (UNIT / len) * bytes); \
      unpack_##name(w + b * (UNIT / len) * bytes, grid, &u); \
      sums = add_unit_##by16(sgn, &u, x, b, sums); \
    } \
    if (b * UNIT < n) { \
      unpack_last(number, w + b * (UNIT / len) * bytes, n - b * UNIT, grid, &u); \
      sums = add_unit_##by16(sgn, &u, x, b, sums); \
    } \
    return total_##by16(sums); \
  }
COMMON(DEFINE)
#undef DEFINE
#define DEFINE(name, sgn, by16) \
  NOINL f32 dot_##name(int type, const u8 *w, const i8 *grid, Packed x, int n) { \
    Sums_##by16 sums = {0}; \
    for (i64 b = 0; b * UNIT < n; b++) { \
      Unit u; \
      unpack_unit(type, w, b, n, grid, &u); \
      sums = add_unit_##by16(sgn, &u, x, b, sums); \
    } \
    return total_##by16(sums); \
  }
DEFINE(by32, 0, 0)
DEFINE(by16, 0, 1)
#if SIGNED_UNITS
DEFINE(signed, 1, 0)
#endif
#undef DEFINE

// A row of weights times one token.
INL f32 dot(TypeInfo t, int type, const u8 *w, const i8 *grid, Packed x, int n) {
  switch (type) {
#define CASE(name, number, len, bytes, sgn, by16) \
  case number: return dot_##name(w, grid, x, n);
    COMMON(CASE)
#undef CASE
  }
#if SIGNED_UNITS
  if (t.is_signed) return dot_signed(type, w, grid, x, n);
#endif
  return t.by16 ? dot_by16(type, w, grid, x, n) : dot_by32(type, w, grid, x, n);
}

// --- several tokens ---
//
// Side by side: a register of L lanes has L/2 tokens, with two words of each while bytes are multiplied, then with the sums
// of two groups: those of 32 that are four apart in a unit, or a group's halves. Of each pair of groups there are the
// registers of values, then one of scales and one of sums, all one after the other.

#define BESIDE_PAIRS(by16) ((by16) ? 8 : 4) // of a unit
#define BESIDE_BYTES(L, by16) (4 * (L) * ((by16) ? 48 : 40)) // of a unit of L/2 tokens

// Tokens behind the last of `count` are that one again.
INL void lay_beside(int lanes, int by16, const Packed *x, int count, i64 units, u8 *to) {
  const int tokens = lanes / 2, words = by16 ? 4 : 8;
  for (i64 b = 0; b < units; b++) for (int i = 0; i < BESIDE_PAIRS(by16); i++) {
    for (int t = 0; t < tokens; t++) {
      const Packed from = x[MIN(t, count - 1)];
      f32 *rest = (f32 *)(to + words * lanes * 4) + t;
      for (int j = 0; j < words; j++)
        STORE(to + j * lanes * 4 + t * 8, LOAD(u64, from.q + b * UNIT + UNIT_AT((i + j / 4 * 4) * 32 + j % 4 * 8)));
      for (int half = 0; half < 2; half++) {
        const i64 group = b * 8 + i + (by16 ? 0 : half * 4);
        rest[half * tokens] = from.d[group];
        rest[half * tokens + lanes] = by16 ? from.sum16[2 * group + half] : from.sum32[group];
      }
    }
    to += (words + 2) * lanes * 4;
  }
}

// One of each half of the lanes.
#define HALVES16(v, a, b) SHUFFLE(v, v, a, a, a, a, a, a, a, a, b, b, b, b, b, b, b, b)
#define HALVES8(v, a, b) SHUFFLE(v, v, a, a, a, a, b, b, b, b)
#define HALVES4(v, a, b) SHUFFLE(v, v, a, a, b, b)
#define PAIRED16(a, b) \
  (SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) + \
   SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31))
#define PAIRED8(a, b) (EVEN8(a, b) + ODD8(a, b))
#define PAIRED4(a, b) (SHUFFLE(a, b, 0, 2, 4, 6) + SHUFFLE(a, b, 1, 3, 5, 7))
typedef f32 f32x2 VEC(8);

// Units of `rows` rows, `stride` apart, times tokens beside each other: y[token · PANEL_ROWS + row].
#define MULTIPLY_BESIDE(L, IV, FV, UV, SV, DOT_ADD) \
  INL void multiply_beside##L(int rows, int is_signed, int by16, int narrow, const Unit *units, i64 stride, i64 count, \
                              const u8 *x, int tokens, f32 *y) { \
    typedef u64 words VEC(4 * L); \
    FV sums[BESIDE_ROWS][8]; \
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int i = 0; i < BESIDE_PAIRS(by16); i++) sums[r][i] = (FV){}; \
    for (i64 b = 0; b < count; b++) UNROLL for (int i = 0; i < BESIDE_PAIRS(by16); i++) { \
      const int each = by16 ? 2 : 4; /* registers of a group */ \
      UNROLL for (int r = 0; r < rows; r++) { \
        const Unit *u = units + r * stride + b; \
        IV parts[2]; \
        UNROLL for (int half = 0; half < 2; half++) { \
          IV p = {}; \
          vh p16 = {}; \
          UNROLL for (int j = 0; j < each; j++) { \
            const int at = by16 ? UNIT_AT(i * 32 + half * 16 + j * 8) : UNIT_AT((i + half * 4) * 32 + j * 8); \
            UV v = (UV)((words){} + LOAD(u64, (const u8 *)u->v + at)); \
            SV q = LOAD(SV, x + (half * each + j) * L * 4); \
            if (NARROW && narrow) p16 = dot_narrow(p16, *(vu *)&v, *(vs *)&q); \
            else p = DOT_ADD(is_signed, p, v, q); \
          } \
          if (NARROW && narrow) *(vi *)&p = widen(p16); \
          parts[half] = p; \
        } \
        const FV d = LOAD(FV, x + 2 * each * L * 4); \
        FV offsets = LOAD(FV, x + (2 * each + 1) * L * 4), s, m; \
        const f32 *scales = (const f32 *)&u->s, *mins = (const f32 *)&u->m; \
        if (by16) { \
          s = HALVES##L(LOAD(f32x2, scales + 2 * i), 0, 1); \
          m = HALVES##L(LOAD(f32x2, mins + 2 * i), 0, 1); \
        } else { \
          s = HALVES##L(LOAD(f32x8, scales + i), 0, 4); \
          m = HALVES##L(LOAD(f32x8, mins + i), 0, 4); \
        } \
        sums[r][i] = FMA(CONVERT(PAIRED##L(parts[0], parts[1]), FV), s * d, sums[r][i]); \
        if (!is_signed) sums[r][i] = FMA(-m, offsets, sums[r][i]); \
      } \
      x += (2 * each + 2) * L * 4; \
    } \
    UNROLL for (int r = 0; r < rows; r++) { \
      const FV *s = sums[r]; \
      f32 out[4][L]; \
      if (by16) STORE(out[0], ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))); \
      else UNROLL for (int i = 0; i < 4; i++) STORE(out[i], s[i]); \
      for (int t = 0; t < tokens; t++) { \
        f32 each[4]; \
        for (int i = 0; i < (by16 ? 1 : 4); i++) each[i] = out[i][t] + out[i][t + L / 2]; \
        y[t * PANEL_ROWS + r] = by16 ? each[0] : (each[0] + each[2]) + (each[1] + each[3]); \
      } \
    } \
  }
#define DEFINE(L, name, sgn, by16, narrow) \
  NOINL void beside##L##_##name(const Unit *units, i64 stride, i64 count, const u8 *x, int tokens, f32 *y) { \
    multiply_beside##L(BESIDE_ROWS, sgn, by16, narrow, units, stride, count, x, tokens, y); \
  }
#if W == 16
#define BESIDE_ROWS 2
#define BESIDE_FEW 2 // tokens that are faster one by one
MULTIPLY_BESIDE(16, i32x16, f32x16, u8x64, i8x64, dot_add)
MULTIPLY_BESIDE(8, i32x8, f32x8, u8x32, i8x32, dot_add8)
DEFINE(16, by32, 0, 0, 0)
DEFINE(16, by16, 0, 1, 0)
DEFINE(8, by32, 0, 0, 0)
DEFINE(8, by16, 0, 1, 0)
#elif W == 8
#define BESIDE_ROWS 1
#define BESIDE_FEW 1
MULTIPLY_BESIDE(8, i32x8, f32x8, u8x32, i8x32, dot_add)
DEFINE(8, by32, 0, 0, 0)
DEFINE(8, by16, 0, 1, 0)
DEFINE(8, signed, 1, 0, 0)
DEFINE(8, narrow32, 0, 0, 1)
DEFINE(8, narrow16, 0, 1, 1)
#else
#if defined(__wasm__)
#define BESIDE_ROWS 1
#else
#define BESIDE_ROWS 2
#endif
#define BESIDE_FEW 1
MULTIPLY_BESIDE(4, i32x4, f32x4, u8x16, i8x16, dot_add)
DEFINE(4, by32, 0, 0, 0)
DEFINE(4, by16, 0, 1, 0)
DEFINE(4, signed, 1, 0, 0)
#if NARROW
DEFINE(4, narrow32, 0, 0, 1)
DEFINE(4, narrow16, 0, 1, 1)
#endif
#endif
#undef DEFINE

// Lanes of tokens beside each other, of `count` of them.
INL int beside_lanes(int count) { return W == 16 ? (count > 4 ? 16 : 8) : W; }
INL void multiply_beside(TypeInfo t, int lanes, const Unit *units, i64 stride, i64 count, const u8 *x, int tokens, f32 *y) {
#if W == 16
  if (lanes == 16) (t.by16 ? beside16_by16 : beside16_by32)(units, stride, count, x, tokens, y);
  else (t.by16 ? beside8_by16 : beside8_by32)(units, stride, count, x, tokens, y);
#else
#if W == 8
#define RUN(name) beside8_##name(units, stride, count, x, tokens, y)
#else
#define RUN(name) beside4_##name(units, stride, count, x, tokens, y)
#endif
  if (t.is_signed) RUN(signed);
#if NARROW
  else if (t.narrow && t.by16) RUN(narrow16);
  else if (t.narrow) RUN(narrow32);
#endif
  else if (t.by16) RUN(by16);
  else RUN(by32);
#undef RUN
#endif
}

// dots: W (rows, n) · x (n, tokens) → (rows, tokens) for a few tokens, in place. For decode.
//
// The order of float32 sums is the same for one token and for many: the whole product of a group of 32 weights, or of
// 16, is scaled and added to the sum of its place in a unit; with AVX-512 even and odd units have separate sums if
// groups are of 32. So the bits of a row do not depend on other rows. One token has those sums in the lanes of one
// register; for several tokens a register has two tokens' sums with AVX-512, elsewhere two groups' sums of each token.
// Every weight is unpacked once.
#pragma once
#include "types.h"

// Rows that one token is multiplied by in one call. With FEATURE_HALVES the call alternates between two halves of the
// rows, after an even number of units for PAIRS: an Intel processor reads two streams 1.3 to 1.4 times as fast as one.
#define SOME_ROWS 8
#define TURN 4
#define DOTS_SINGLE_MAX (W == 16 ? 2 : 1) // up to this many tokens are faster one by one
#define NEAR 1152 // prefetch distance in bytes within one of a row's two streams

// Prefetches the weights `ahead` of a unit of `bytes` in a stream: a processor prefetches by itself only within a page.
INL void fetch_ahead(const u8 *p, int bytes, i64 ahead) {
  UNROLL for (int i = 0; i < bytes; i += 64) __builtin_prefetch(p + ahead + i);
}

#define EVEN8(a, b) SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD8(a, b) SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define TWICE(v) SHUFFLE(v, v, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7)

#if W == 16
// Products of the halves of a unit's eight groups of 32.
INL vi halves32(const Unit *u, const i8 *q) {
  vi first = dot_add(0, (vi){}, u->v[0], LOAD(vs, q)), second = dot_add(0, (vi){}, u->v[2], LOAD(vs, q + 128));
  return dot_add(0, first, u->v[1], LOAD(vs, q + 64)) + dot_add(0, second, u->v[3], LOAD(vs, q + 192));
}
#endif
// Products of a unit's eight groups of 32.
INL i32x8 products32(int is_signed, const Unit *u, const i8 *q) {
#if W == 16
  const vi all = halves32(u, q);
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
#define MIXED16(a, b) \
  (SHUFFLE(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30) + \
   SHUFFLE(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31))
// Products of a unit's sixteen groups of 16.
INL i32x16 products16(const Unit *u, const i8 *q) {
#if W == 16
  vi a = dot_add(0, (vi){}, u->v[0], LOAD(vs, q)), b = dot_add(0, (vi){}, u->v[2], LOAD(vs, q + 128));
  a = dot_add(0, a, u->v[1], LOAD(vs, q + 64));
  b = dot_add(0, b, u->v[3], LOAD(vs, q + 192));
  return MIXED16(a, b);
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

#if W == 8
// Takes off 2^shift · Σx, if every minimum is 2^shift times its scale: exactly, and one step less for several tokens.
INL i32x8 less_products(i32x8 products, const i32 *less, int shift) {
  return dot_words(products, (vh)LOAD(vi, less), (vh){} + (i16)(1 << shift));
}
#endif
// Adds unit b of a row times one token. shift: of the type (types.h). With AVX-512, two units with groups of 32 share a
// register: the even one has the low half.
#if W == 16
typedef f32x16 Sums_0;
#define OF_UNIT(sums, b) ((b) & 1 ? HIGH8(sums) : LOW8(sums))
#define WITH_UNIT(sums, b, own) ((b) & 1 ? JOIN8(LOW8(sums), own) : JOIN8(own, HIGH8(sums)))
#else
typedef f32x8 Sums_0;
#define OF_UNIT(sums, b) sums
#define WITH_UNIT(sums, b, own) own
#endif
INL Sums_0 add_unit_0(int is_signed, int shift, const Unit *u, Packed x, i64 b, Sums_0 sums) {
  f32x8 own = OF_UNIT(sums, b), m = LOW8(u->m), offsets = LOAD(f32x8, x.sum32 + b * 8);
  i32x8 products = products32(is_signed, u, x.q + b * UNIT);
#if W == 8
  if (!is_signed && shift >= 0) products = less_products(products, x.less32 + b * 8, shift);
#else
  shift = -1;
#endif
  own = FMA(CONVERT(products, f32x8), LOW8(u->s) * LOAD(f32x8, x.d + b * 8), own);
  if (!is_signed && shift < 0) own = FMA(-m, offsets, own);
  return WITH_UNIT(sums, b, own);
}
INL f32 total_0(Sums_0 sums) {
#if W == 16
  return sum16(sums);
#else
  return sum8(sums);
#endif
}
typedef f32x16 Sums_1;
INL Sums_1 add_unit_1(int is_signed, int shift, const Unit *u, Packed x, i64 b, Sums_1 sums) {
  f32x8 d = LOAD(f32x8, x.d + b * 8);
  i32x16 products = products16(u, x.q + b * UNIT);
#if W == 8
  if (shift >= 0) {
    const i32 *less = x.less16 + b * 16;
    products = JOIN8(less_products(LOW8(products), less, shift), less_products(HIGH8(products), less + 8, shift));
  }
#else
  shift = -1;
#endif
  sums = FMA(CONVERT(products, f32x16), u->s * TWICE(d), sums);
  f32x16 m = u->m, offsets = LOAD(f32x16, x.sum16 + b * 16);
  return shift < 0 ? FMA(-m, offsets, sums) : sums;
}
INL f32 total_1(Sums_1 sums) { return sum16(sums); }

#if W == 16
// Sums of two words side by side, of both registers.
#define PAIRED16(a, b) \
  (SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) + \
   SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31))
// Units b and b + 1, b even, with scales and minimums of both.
INL Sums_0 add_pair(const Unit *u, f32x16 s, f32x16 m, Packed x, i64 b, Sums_0 sums) {
  vi first = halves32(u, x.q + b * UNIT), second = halves32(u + 1, x.q + b * UNIT + UNIT);
  sums = FMA(CONVERT(PAIRED16(first, second), f32x16), s * LOAD(f32x16, x.d + b * 8), sums);
  return FMA(-m, LOAD(f32x16, x.sum32 + b * 8), sums);
}
#define PAIRS_1(name, each)
#define PAIRS_0(name, each) \
  for (; b + 1 < end; b += 2, p += 2 * (each)) { \
    fetch_ahead(p, 2 * (each), ahead); \
    Unit u[2]; \
    unpack_##name(p, grid, u); \
    unpack_##name(p + (each), grid, u + 1); \
    f32x16 s = JOIN8(LOW8(u[0].s), LOW8(u[1].s)), m = JOIN8(LOW8(u[0].m), LOW8(u[1].m)); \
    if (TYPE_##name == TYPE_q4_k) scales_q4_k(p, p + (each), &s, &m); \
    if (TYPE_##name == TYPE_q5_k) scales_q5_k(p, p + (each), &s, &m); \
    sums = add_pair(u, s, m, *x, b, sums); \
  }
#else
#define PAIRS_0(name, each)
#define PAIRS_1(name, each)
#endif

// Block types with a kernel that keeps units in registers: all types in a large library, else the most common ones.
#define COMMON_LEAST(X) \
  X(q4_0, 2, 32, 18, 0, 0) X(q8_0, 8, 32, 34, SIGNED_UNITS, 0) X(q4_k, 12, 256, 144, 0, 0) X(q6_k, 14, 256, 210, 0, 1)
#define COMMON_MORE(X) \
  COMMON_LEAST(X) X(q4_1, 3, 32, 20, 0, 0) X(q5_0, 6, 32, 22, 0, 0) X(q2_k, 10, 256, 84, 0, 1) X(q3_k, 11, 256, 110, 0, 1) \
  X(q5_k, 13, 256, 176, 0, 0) X(iq4_nl, 20, 32, 18, SIGNED_UNITS, 0) X(iq4_xs, 23, 256, 136, SIGNED_UNITS, 0) \
  X(mxfp4, 39, 32, 17, 0, 0)
#if defined(__wasm__) // where each type costs five times the bytes
#define COMMON COMMON_LEAST
#elif PLAIN_FLOATS // old processors
#define COMMON COMMON_MORE
#else
#define COMMON(X) \
  COMMON_MORE(X) X(q5_1, 7, 32, 24, 0, 0) X(iq2_xxs, 16, 256, 66, 0, 0) X(iq2_xs, 17, 256, 74, 0, 1) \
  X(iq3_xxs, 18, 256, 98, 0, 0) X(iq1_s, 19, 256, 50, 0, 0) X(iq3_s, 21, 256, 110, 0, 0) X(iq2_s, 22, 256, 82, 0, 1) \
  X(iq1_m, 29, 256, 56, 0, 1) X(tq1_0, 34, 256, 54, 0, 1) X(tq2_0, 35, 256, 66, 0, 1) X(nvfp4, 40, 64, 36, 0, 1) \
  X(q1_0, 41, 128, 18, 0, 0) X(q2_0, 42, 64, 18, 0, 0)
#endif
// Adds units b … end − 1 of a row of n weights to the sums at `to`; the last may not be whole.
NOINL void add_any(TypeInfo t, int type, const u8 *row, i64 b, i64 end, int n, const i8 *grid, const Packed *x, f32x16 *to) {
  for (; b < end; b++) {
    Unit u;
    unpack_unit(type, row, b, n, grid, &u);
    if (t.by16) STORE(to, add_unit_1(0, t.shift, &u, *x, b, LOAD(Sums_1, to)));
    else if (SIGNED_UNITS && t.is_signed) STORE(to, add_unit_0(1, -1, &u, *x, b, LOAD(Sums_0, to)));
    else STORE(to, add_unit_0(0, t.shift, &u, *x, b, LOAD(Sums_0, to)));
  }
}
// Adds whole units of rows that lie `stride` apart; w is the first unit of the first row. to: (rows).
#define DEFINE(name, number, len, bytes, sgn, by16) \
  NOINL void add_##name(const u8 *w, i64 stride, int rows, i64 begin, i64 end, i64 ahead, const i8 *grid, const Packed *x, \
                        f32x16 *to) { \
    for (; rows > 0; rows--, w += stride, to++) { \
      Sums_##by16 sums = LOAD(Sums_##by16, to); \
      const u8 *p = w; \
      i64 b = begin; \
      PAIRS_##by16(name, UNIT / len * bytes) \
      for (; b < end; b++, p += UNIT / len * bytes) { \
        fetch_ahead(p, UNIT / len * bytes, ahead); \
        Unit u; \
        unpack_##name(p, grid, &u); \
        sums = add_unit_##by16(sgn, SHIFT_##name, &u, *x, b, sums); \
      } \
      STORE(to, sums); \
    } \
  }
COMMON(DEFINE)
#undef DEFINE

// Rows that lie `stride` apart times each of `count` tokens, at most DOTS_SINGLE_MAX: y[token · to + row]. With halves, the
// number of rows is even.
NOINL void dot(TypeInfo t, int type, const u8 *w, i64 stride, int rows, int halves, const i8 *grid, const Packed *x, int count,
               int n, f32 *y, i64 to) {
  const int apart = halves ? rows / 2 : 1; // distance of rows that are summed together
  const i64 units = n / UNIT, turn = halves ? TURN : units, ahead = halves ? NEAR : AHEAD;
  for (int r = 0, some; r < (halves ? apart : rows); r += halves ? 1 : some) {
    f32x16 all[DOTS_SINGLE_MAX * SOME_ROWS], *sums;
    some = halves ? 2 : MIN(SOME_ROWS, rows - r);
    for (int k = 0; k < count; k++) for (int i = 0; i < some; i++) all[k * SOME_ROWS + i] = (f32x16){};
    const u8 *first = w + r * stride;
    for (i64 begin = 0; begin < units; begin += turn) for (int k = 0; k < count; k++) {
      const i64 end = MIN(begin + turn, units);
      sums = all + k * SOME_ROWS;
      switch (type) {
#define CASE(name, number, len, bytes, sgn, by16) \
        case number: \
          add_##name(first + begin * (UNIT / len * bytes), apart * stride, some, begin, end, ahead, grid, x + k, sums); \
          break;
        COMMON(CASE)
#undef CASE
        default:
          for (int i = 0; i < some; i++) add_any(t, type, first + i * apart * stride, begin, end, n, grid, x + k, sums + i);
      }
    }
    for (int k = 0; k < count; k++) for (int i = 0; i < some; i++) {
      sums = all + k * SOME_ROWS + i;
      if (n % UNIT) add_any(t, type, first + i * apart * stride, units, units + 1, n, grid, x + k, sums);
      y[k * to + r + i * apart] = t.by16 ? total_1(*sums) : total_0(LOAD(Sums_0, sums));
    }
  }
}

// several: W (rows, n) · x (n, tokens) → (rows, tokens) for up to 8 tokens, in place, with the same bits as each token
// alone (dots.h).
#pragma once
#include "dots.h"

#define DOTS_TOKENS 8 // at once

#if W == 16
// Two rows at once, whose units stay in registers, and pairs of tokens: a register has the sums of both if groups are
// of 32, of one if they are of 16.
#define DOTS_ROWS 2
typedef f32x16 PairSums[2 * DOTS_ROWS];

// Adds unit b of the rows times some pairs of tokens.
INL void add_units(int by16, const Unit *u, const Packed *x, int pairs, i64 b, PairSums *sums) {
  f32x16 s[DOTS_ROWS], m[DOTS_ROWS];
  UNROLL for (int r = 0; r < DOTS_ROWS; r++) {
    s[r] = by16 ? u[r].s : JOIN8(LOW8(u[r].s), LOW8(u[r].s));
    m[r] = by16 ? u[r].m : JOIN8(LOW8(u[r].m), LOW8(u[r].m));
  }
  for (int pair = 0; pair < pairs; pair++) {
    const Packed left = x[2 * pair], right = x[2 * pair + 1];
    const f32x8 d = LOAD(f32x8, left.d + b * 8), e = LOAD(f32x8, right.d + b * 8);
    f32x16 *to = sums[pair];
    vi p[DOTS_ROWS][2], q[DOTS_ROWS][2]; // the left and the right token
    UNROLL for (int r = 0; r < DOTS_ROWS; r++) UNROLL for (int half = 0; half < 2; half++) p[r][half] = q[r][half] = (vi){};
    UNROLL for (int j = 0; j < 4; j++) {
      const vs a = LOAD(vs, left.q + b * UNIT + j * 64), c = LOAD(vs, right.q + b * UNIT + j * 64);
      const int half = by16 ? j / 2 : 0;
      UNROLL for (int r = 0; r < DOTS_ROWS; r++) {
        p[r][half] = dot_add(0, p[r][half], u[r].v[j], a);
        q[r][half] = dot_add(0, q[r][half], u[r].v[j], c);
      }
    }
    if (by16) {
      const f32x16 a = TWICE(d), c = TWICE(e);
      const f32x16 offsets = LOAD(f32x16, left.sum16 + b * 16), others = LOAD(f32x16, right.sum16 + b * 16);
      UNROLL for (int r = 0; r < DOTS_ROWS; r++) {
        to[2 * r] = FMA(-m[r], offsets, FMA(CONVERT(MIXED16(p[r][0], p[r][1]), f32x16), s[r] * a, to[2 * r]));
        to[2 * r + 1] = FMA(-m[r], others, FMA(CONVERT(MIXED16(q[r][0], q[r][1]), f32x16), s[r] * c, to[2 * r + 1]));
      }
    } else {
      const f32x16 both = JOIN8(d, e), offsets = JOIN8(LOAD(f32x8, left.sum32 + b * 8), LOAD(f32x8, right.sum32 + b * 8));
      to += b % 2 * DOTS_ROWS;
      UNROLL for (int r = 0; r < DOTS_ROWS; r++)
        to[r] = FMA(-m[r], offsets, FMA(CONVERT(PAIRED16(p[r][0], q[r][0]), f32x16), s[r] * both, to[r]));
    }
  }
}
// Rows `stride` apart times `count` tokens (the last repeated if odd): y[token · PANEL_ROWS + row]. `unpack` fills u[r]
// from p.
#define DOTS(name, by16, bytes, unpack) \
  NOINL void dots_##name(int type, const u8 *w, i64 stride, const i8 *grid, const Packed *x, int count, int n, f32 *y) { \
    const int pairs = (count + 1) / 2; \
    const i64 each = bytes; \
    PairSums sums[DOTS_TOKENS / 2]; \
    for (int i = 0; i < pairs; i++) UNROLL for (int j = 0; j < 2 * DOTS_ROWS; j++) sums[i][j] = (f32x16){}; \
    for (i64 b = 0; b * UNIT < n; b++) { \
      Unit u[DOTS_ROWS]; \
      UNROLL for (int r = 0; r < DOTS_ROWS; r++) { \
        const u8 *p = w + r * stride + b * each; \
        UNROLL for (int i = 0; i < UNIT; i += 64) if (i < each) __builtin_prefetch(p + DOTS_ROWS * stride + i); \
        unpack; \
      } \
      add_units(by16, u, x, pairs, b, sums); \
    } \
    for (int t = 0; t < count; t++) UNROLL for (int r = 0; r < DOTS_ROWS; r++) { \
      const f32 *at = (const f32 *)sums[t / 2]; \
      const f32 *even = at + (2 * r + t % 2) * 8, *odd = even + DOTS_ROWS * 16; \
      y[t * PANEL_ROWS + r] = by16 ? sum16(LOAD(f32x16, at + (2 * r + t % 2) * 16)) : sum8(LOAD(f32x8, even) + LOAD(f32x8, odd)); \
    } \
  }
// The types of COMMON that are worth their code size here.
#define RESIDENT(X) \
  X(q4_0, 32, 18, 0) X(q8_0, 32, 34, 0) X(q4_k, 256, 144, 0) X(q5_k, 256, 176, 0) X(q6_k, 256, 210, 1) X(iq4_xs, 256, 136, 0) \
  X(mxfp4, 32, 17, 0)
#define DEFINE(name, len, bytes, by16) DOTS(name, by16, UNIT / len * bytes, unpack_##name(p, grid, u + r))
RESIDENT(DEFINE)
#undef DEFINE
DOTS(by32, 0, UNIT / type_info(type).len * type_info(type).bytes, unpack_unit(type, w + r * stride, b, n, grid, u + r))
DOTS(by16, 1, UNIT / type_info(type).len * type_info(type).bytes, unpack_unit(type, w + r * stride, b, n, grid, u + r))
INL void dots(TypeInfo t, int type, const u8 *w, i64 stride, const i8 *grid, const Packed *x, int count, int n, f32 *y) {
  if (n % UNIT == 0) switch (type) {
#define CASE(name, len, bytes, by16) \
  case TYPE_##name: dots_##name(type, w, stride, grid, x, count, n, y); return;
    RESIDENT(CASE)
#undef CASE
  }
  (t.by16 ? dots_by16 : dots_by32)(type, w, stride, grid, x, count, n, y);
}
#else
// Interleaved: a register has W/2 tokens, with two words of each during byte products, then the sums of two groups: two
// of 32 that are four apart in a unit, or a group's halves. Each pair of groups has the registers of values, then one
// of scales and one of sums, all in sequence.
#if W == 8 || PLAIN_FLOATS
#define DOTS_ROWS 1
#else
#define DOTS_ROWS 2
#endif
#define BESIDE_TOKENS (W / 2)
#define BESIDE_PAIRS(by16) ((by16) ? 8 : 4) // per unit
#define BESIDE_BYTES(by16) (4 * W * ((by16) ? 48 : 40)) // per unit

// Tokens after the last of `count` repeat it.
INL void lay_beside(int by16, const Packed *x, int count, i64 units, u8 *to) {
  const int words = by16 ? 4 : 8;
  for (i64 b = 0; b < units; b++) for (int i = 0; i < BESIDE_PAIRS(by16); i++) {
    for (int t = 0; t < BESIDE_TOKENS; t++) {
      const Packed from = x[MIN(t, count - 1)];
      f32 *rest = (f32 *)(to + words * W * 4) + t;
      for (int j = 0; j < words; j++)
        STORE(to + j * W * 4 + t * 8, LOAD(u64, from.q + b * UNIT + (i + j / 4 * 4) * 32 + j % 4 * 8));
      for (int half = 0; half < 2; half++) {
        const i64 group = b * 8 + i + (by16 ? 0 : half * 4);
        rest[half * BESIDE_TOKENS] = from.d[group];
        rest[half * BESIDE_TOKENS + W] = by16 ? from.sum16[2 * group + half] : from.sum32[group];
      }
    }
    to += (words + 2) * W * 4;
  }
}

// One from each half of the lanes.
#if W == 8
#define HALVES(v, a, b) SHUFFLE(v, v, a, a, a, a, b, b, b, b)
#define PAIRED(a, b) (EVEN8(a, b) + ODD8(a, b))
#else
#define HALVES(v, a, b) SHUFFLE(v, v, a, a, b, b)
#define PAIRED(a, b) (SHUFFLE(a, b, 0, 2, 4, 6) + SHUFFLE(a, b, 1, 3, 5, 7))
#endif
typedef f32 f32x2 VEC(8);

// Units of rows `stride` apart times interleaved tokens: y[token · PANEL_ROWS + row].
INL void multiply_units(int is_signed, int by16, int narrow, const Unit *units, i64 stride, i64 count, const u8 *x,
                        int tokens, f32 *y) {
  typedef u64 words VEC(4 * W);
  vf sums[DOTS_ROWS][8];
  UNROLL for (int r = 0; r < DOTS_ROWS; r++) UNROLL for (int i = 0; i < BESIDE_PAIRS(by16); i++) sums[r][i] = (vf){};
  for (i64 b = 0; b < count; b++) UNROLL for (int i = 0; i < BESIDE_PAIRS(by16); i++) {
    const int each = by16 ? 2 : 4; // registers per group
    UNROLL for (int r = 0; r < DOTS_ROWS; r++) {
      const Unit *u = units + r * stride + b;
      vi parts[2];
      UNROLL for (int half = 0; half < 2; half++) {
        vi p = {};
        vh p16 = {};
        UNROLL for (int j = 0; j < each; j++) {
          const int at = by16 ? i * 32 + half * 16 + j * 8 : (i + half * 4) * 32 + j * 8;
          vu v = (vu)((words){} + LOAD(u64, (const u8 *)u->v + at));
          vs q = LOAD(vs, x + (half * each + j) * W * 4);
          if (NARROW && narrow) p16 = dot_narrow(p16, v, q);
          else p = dot_add(is_signed, p, v, q);
        }
        if (NARROW && narrow) p = widen(p16);
        parts[half] = p;
      }
      const vf d = LOAD(vf, x + 2 * each * W * 4);
      vf offsets = LOAD(vf, x + (2 * each + 1) * W * 4), s, m;
      const f32 *scales = (const f32 *)&u->s, *mins = (const f32 *)&u->m;
      if (by16) {
        s = HALVES(LOAD(f32x2, scales + 2 * i), 0, 1);
        m = HALVES(LOAD(f32x2, mins + 2 * i), 0, 1);
      } else {
        s = HALVES(LOAD(f32x8, scales + i), 0, 4);
        m = HALVES(LOAD(f32x8, mins + i), 0, 4);
      }
      sums[r][i] = FMA(CONVERT(PAIRED(parts[0], parts[1]), vf), s * d, sums[r][i]);
      if (!is_signed) sums[r][i] = FMA(-m, offsets, sums[r][i]);
    }
    x += (2 * each + 2) * W * 4;
  }
  UNROLL for (int r = 0; r < DOTS_ROWS; r++) {
    const vf *s = sums[r];
    f32 out[4][W];
    if (by16) STORE(out[0], ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7])));
    else UNROLL for (int i = 0; i < 4; i++) STORE(out[i], s[i]);
    for (int t = 0; t < tokens; t++) {
      f32 each[4];
      for (int i = 0; i < (by16 ? 1 : 4); i++) each[i] = out[i][t] + out[i][t + W / 2];
      y[t * PANEL_ROWS + r] = by16 ? each[0] : (each[0] + each[2]) + (each[1] + each[3]);
    }
  }
}
#define DEFINE(name, sgn, by16, narrow) \
  NOINL void beside_##name(const Unit *units, i64 stride, i64 count, const u8 *x, int tokens, f32 *y) { \
    multiply_units(sgn, by16, narrow, units, stride, count, x, tokens, y); \
  }
DEFINE(by32, 0, 0, 0)
DEFINE(by16, 0, 1, 0)
DEFINE(signed, 1, 0, 0)
#if NARROW
DEFINE(narrow32, 0, 0, 1)
DEFINE(narrow16, 0, 1, 1)
#endif
#undef DEFINE

INL void multiply_beside(TypeInfo t, const Unit *units, i64 stride, i64 count, const u8 *x, int tokens, f32 *y) {
#define RUN(name) beside_##name(units, stride, count, x, tokens, y)
  if (t.is_signed) RUN(signed);
#if NARROW
  else if (is_narrow(t) && t.by16) RUN(narrow16);
  else if (is_narrow(t)) RUN(narrow32);
#endif
  else if (t.by16) RUN(by16);
  else RUN(by32);
#undef RUN
}

#if AVXVNNI
// With AVX-VNNI a register has one word of each of eight tokens, whose sums need no step across it and have the same
// bits. Each group has the registers of words, then one of scales, and one of sums, or of `less32` if weights are
// signed. Eight words per token: a place's words go to `to`, the next place's `step` further, from the fifth on `gap`
// more.
NOINL void lay_eight(const i8 *const *tokens, i64 at, u8 *to, i64 step, i64 gap) {
  i32x8 v[8];
  UNROLL for (int t = 0; t < 8; t++) v[t] = LOAD(i32x8, tokens[t] + at);
  transpose8(v);
  UNROLL for (int i = 0; i < 8; i++) STORE(to + i * step + (i < 4 ? 0 : gap), v[i]);
}
NOINL void lay_words(TypeInfo type, const Packed *x, int count, i64 units, u8 *to) {
  const i8 *q[DOTS_TOKENS];
  for (int t = 0; t < DOTS_TOKENS; t++) q[t] = x[MIN(t, count - 1)].q;
  const i64 d = units * UNIT, sum32 = d + d / 8, sum16 = d + d / 4, less32 = d + d / 2;
  for (i64 b = 0; b < units; b++) {
    if (type.by16) for (int i = 0; i < 2; i++) {
      lay_eight(q, d + b * 32, to + 128 + i * 192, 384, 0);
      lay_eight(q, sum16 + b * 64 + i * 32, to + 160 + i * 8 * 192, 192, 0);
    } else {
      lay_eight(q, d + b * 32, to + 256, 320, 0);
      lay_eight(q, (type.is_signed ? less32 : sum32) + b * 32, to + 288, 320, 0);
    }
    for (int g = 0; g < 8; g++, to += type.by16 ? 384 : 320) lay_eight(q, b * UNIT + g * 32, to, 32, type.by16 ? 64 : 0);
  }
}
#define WORDS_ROWS 2 // at once
// Shifts signed weights to 0 … 255.
INL void raise_signed(Unit *u, i64 count) {
  for (; count > 0; count--, u++) UNROLL for (int i = 0; i < 4; i++) u->v[i] ^= 0x80;
}
// Units of rows `stride` apart times the eight: y[token · PANEL_ROWS + row].
WITH_AVXVNNI NOINL void words_times(TypeInfo type, const Unit *units, i64 stride, i64 count, const u8 *x, int tokens, f32 *y) {
  const int groups = type.by16 ? 16 : 8;
  vf sums[16][WORDS_ROWS];
  for (int g = 0; g < groups; g++) UNROLL for (int r = 0; r < WORDS_ROWS; r++) sums[g][r] = (vf){};
  for (; count > 0; count--, units++) {
    const u8 *w = (const u8 *)units->v;
    for (int g = 0; g < groups; g++, x += 64) {
      vi sum[WORDS_ROWS];
      sum[0] = (vi){} + EXACT;
      if (type.is_signed) sum[0] = dot_words(sum[0], LOAD(vh, x + 288), (vh){} + 128);
      sum[1] = sum[0];
      for (int k = 0; k < 2 - type.by16; k++, w += 16, x += 128) UNROLL for (int j = 0; j < 4; j++) {
        const vs v = LOAD(vs, x + j * 32);
        UNROLL for (int r = 0; r < WORDS_ROWS; r++)
          sum[r] = vnni_add(sum[r], (vu)((vi){} + LOAD(i32, w + r * stride * sizeof(Unit) + j * 4)), v);
      }
      UNROLL for (int r = 0; r < WORDS_ROWS; r++) {
        const Unit *u = units + r * stride;
        sums[g][r] = FMA(exact_float(sum[r]), splat(((const f32 *)&u->s)[g]) * LOAD(vf, x), sums[g][r]);
        if (!type.is_signed) sums[g][r] = FMA(-splat(((const f32 *)&u->m)[g]), LOAD(vf, x + 32), sums[g][r]);
      }
    }
  }
  for (int half = groups / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) UNROLL for (int r = 0; r < WORDS_ROWS; r++) sums[i][r] += sums[i + half][r];
  for (int t = 0; t < tokens; t++) UNROLL for (int r = 0; r < WORDS_ROWS; r++) y[t * PANEL_ROWS + r] = sums[0][r][t];
}
#endif
#endif

// several: W (rows, n) · x (n, tokens) → (rows, tokens) for a few tokens, with the same bits as each token alone
// (dots.h).
#pragma once
#include "dots.h"
#include "panel.h"

#define DOTS_TOKENS (W == 16 ? 8 : 16) // at once

#if W == 16
// Two rows at once, whose units stay in registers, and pairs of tokens: a register has the sums of both if groups are
// of 32, of one if they are of 16.
#define DOTS_ROWS 2
typedef f32x16 PairSums[2 * DOTS_ROWS];

// Adds unit b of the rows times several pairs of tokens.
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
// Rows that lie `stride` apart times `count` tokens (the last repeated if odd): y[token · PANEL_ROWS + row]. `unpack`
// fills u[r] from p.
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
// PANEL_ROWS rows at once, a unit at a time: unpacked to a panel that stays in the first-level cache, and multiplied
// with tiles of tokens. A lane is a row; each group of a unit has sums of its own.
#define BESIDE_TILE (TILE > 3 ? 4 : 2)
#define BESIDE_GROUPS(by16) ((by16) ? 16 : 8) // per unit
typedef vf BesideSums[16][BESIDE_TILE][PANEL_REGS]; // by group of a unit, and by token
// A unit of the rows: words, then scales, then minimums.
#define BESIDE_SCALES (UNIT * PANEL_ROWS)
#define BESIDE_MINS(by16) (BESIDE_SCALES + BESIDE_GROUPS(by16) * PANEL_ROWS * 4)

enum { VNNI = 64 }; // AVX-VNNI is used, beside the variants of panel.h; its signed weights are shifted to 0 … 255
// Adds unit b of the rows times `count` tokens, and prefetches some cache lines with each group.
// Where sums have minimums as well, what they begin with is added again.
INL void multiply_unit(int count, int how, const Panel *unit, i64 b, i64 filled, const Packed *x, const u8 *next, i64 lines,
                       BesideSums sums) {
  const int by16 = IS_BY16(how, *unit), group = by16 ? 16 : 32, shift = unit->shift;
  const u8 *words = unit->words;
  const u8 *s = words + BESIDE_SCALES;
  const i64 mins = BESIDE_MINS(by16) - BESIDE_SCALES;
  const i8 *q[BESIDE_TILE]; // scales and sums have the same distance from each of them
  UNROLL for (int t = 0; t < count; t++) q[t] = x[t].q + b * UNIT;
  const i64 d = filled - b * UNIT + b * 32, offset = d + (filled >> 3) + (by16 ? (filled >> 3) + b * 32 : 0);
  const i64 less = offset + (filled >> 3) * 3;
  vf(*to)[PANEL_REGS] = sums[0];
  for (i64 i = 0, g = 0; i < UNIT; i += group, g += 4, to += BESIDE_TILE, s += PANEL_ROWS * 4) {
    for (i64 k = 0; k < lines; k++, next += 64) __builtin_prefetch(next, 0, 3);
    vi products[BESIDE_TILE][PANEL_REGS];
    UNROLL for (int t = 0; t < count; t++) {
      vi begin = {};
      if (how & BEGUN) begin += LOAD(i32, q[t] + less + g);
      if (how & BEGUN) begin = how & VNNI ? dot_words((vi){}, (vh)begin, (vh){} + (i16)(1 << shift)) : (vi)((vh)begin << (i16)shift);
      UNROLL for (int p = 0; p < PANEL_REGS; p++) products[t][p] = begin;
    }
    i64 at = i;
    do {
      UNROLL for (int k = 0; k < MOST_WORDS(how); k++, words += PANEL_ROWS * 4) {
        vu w[PANEL_REGS];
        UNROLL for (int p = 0; p < PANEL_REGS; p++) w[p] = LOAD(vu, words + p * W * 4);
        UNROLL for (int t = 0; t < count; t++) {
          const vs v = four(q[t] + at + k * 4);
          UNROLL for (int p = 0; p < PANEL_REGS; p++) {
            if (how & VNNI) products[t][p] = vnni_step(products[t][p], w[p], v);
            else if (how & SHORT) products[t][p] = (vi)dot_narrow((vh)products[t][p], w[p], v);
            else products[t][p] = dot_add(how & SIGNED, products[t][p], w[p], v);
            HOLD(products[t][p]);
          }
        }
      }
    } while (how & PLAIN && (at += 16) < i + group);
    UNROLL for (int t = 0; t < count; t++) {
      vi more = {};
      if (how & BEGUN && how & MINS) more = widen((vh)(more + LOAD(i32, q[t] + less + g)) << (i16)shift);
      const vf scale = splat(LOAD(f32, q[t] + d + (by16 ? g / 8 * 4 : g))), sum = splat(LOAD(f32, q[t] + offset + g));
      UNROLL for (int p = 0; p < PANEL_REGS; p++) {
        vi all = products[t][p];
        if (how & SHORT) all = widen((vh)all);
        if (how & BEGUN && how & MINS) all -= more;
        vf v = FMA(CONVERT(all, vf), LOAD(vf, s + p * W * 4) * scale, to[t][p]);
        if (how & MINS) v = FMA(-LOAD(vf, s + mins + p * W * 4), sum, v);
        to[t][p] = v;
      }
    }
  }
}
#if AVXVNNI
#define BESIDE_VNNI(X) X(vnni32, VNNI | MINS) X(vnni_begun32, VNNI | BEGUN) X(vnni_begun16, VNNI | BEGUN | BY16)
#define BESIDE(X) TILES(X) BESIDE_VNNI(X) X(vnni16, VNNI | MINS | BY16)
#else
#define BESIDE_VNNI(X)
#define BESIDE(X) TILES(X)
#endif
// Also for half as many tokens: what most files have.
#if SHIFTED
#define BESIDE_HALF(X) \
  X(signed, SIGNED) X(short32, SHORT | MINS) X(begun32, SHORT | BEGUN) X(begun16, SHORT | BEGUN | BY16) BESIDE_VNNI(X)
#elif NARROW
#define BESIDE_HALF(X) X(signed, SIGNED) X(short32, SHORT | MINS) X(short16, SHORT | MINS | BY16)
#else
#define BESIDE_HALF(X) TILES(X)
#endif
INL int beside_how(TypeInfo t, int vnni) {
  if (!vnni) return how_of(t);
  return VNNI | (t.by16 ? BY16 : 0) | (takes_off(t) || t.is_signed ? BEGUN : MINS);
}
#define DEFINE_FOR(kind, count, how) \
  NOINL void beside_##kind(const Panel *unit, i64 b, i64 filled, const Packed *x, const u8 *next, i64 lines, \
                           BesideSums sums) { \
    multiply_unit(count, how, unit, b, filled, x, next, lines, sums); \
  }
#define DEFINE(name, how) DEFINE_FOR(name, BESIDE_TILE, how)
BESIDE(DEFINE)
#undef DEFINE
#define DEFINE(name, how) DEFINE_FOR(half_##name, BESIDE_TILE / 2, how)
BESIDE_HALF(DEFINE)
#undef DEFINE
#undef DEFINE_FOR
// x has BESIDE_TILE tokens, of which the first `count` are stored.
INL void multiply_beside(int how, int count, const Panel *unit, i64 b, i64 filled, const Packed *x, const u8 *next, i64 lines,
                         BesideSums sums) {
  if (count <= BESIDE_TILE / 2) switch (how) {
#define CASE(name, how) case how: beside_half_##name(unit, b, filled, x, next, lines, sums); return;
    BESIDE_HALF(CASE)
#undef CASE
  }
  switch (how) {
#define CASE(name, how) case how: beside_##name(unit, b, filled, x, next, lines, sums); return;
    BESIDE(CASE)
#undef CASE
  }
}
// Sums over the groups of a unit in the order of one token's sums: y[token · PANEL_ROWS + row]
NOINL void beside_totals(int by16, int count, BesideSums s, f32 *y) {
  for (int t = 0; t < count; t++) UNROLL for (int p = 0; p < PANEL_REGS; p++) {
    for (int i = 0; by16 && i < 8; i++) s[i][t][p] += s[i + 8][t][p];
    const vf even = (s[0][t][p] + s[4][t][p]) + (s[2][t][p] + s[6][t][p]);
    STORE(y + t * PANEL_ROWS + p * W, even + ((s[1][t][p] + s[5][t][p]) + (s[3][t][p] + s[7][t][p])));
  }
}
#endif

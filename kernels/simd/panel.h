// panel: PANEL_ROWS rows of weights times many tokens. For prompts.
//
// The rows are unpacked once to a panel, small enough for the second-level cache: words of four bytes of a row, the rows
// side by side, so that a register holds one word of each of its rows. Then every token is multiplied by it in tiles.
// A row's sum does not depend on how many tokens there are.
#pragma once
#include "types.h"

typedef struct {
  u8 *words; // (n/4, PANEL_ROWS, 4)
  f32 *s, *m; // (groups, PANEL_ROWS)
  int shift; // of its type
} Panel;
#define PANEL_BYTES(n) (FILLED(n) * PANEL_ROWS + FILLED(n) / 16 * PANEL_ROWS * 8)
INL Panel panel_at(u8 *scratch, int n, TypeInfo t) {
  f32 *s = (f32 *)(scratch + FILLED(n) * PANEL_ROWS);
  return (Panel){scratch, s, s + FILLED(n) / (t.by16 ? 16 : 32) * PANEL_ROWS, t.shift};
}

// (8 rows, 8 words) to (8 words, 8 rows)
INL void transpose8(i32x8 v[8]) {
  i32x8 a[8], b[8];
  UNROLL for (int i = 0; i < 4; i++) {
    a[2 * i] = SHUFFLE(v[2 * i], v[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    a[2 * i + 1] = SHUFFLE(v[2 * i], v[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  UNROLL for (int h = 0; h < 2; h++) UNROLL for (int i = 0; i < 2; i++) {
    b[4 * h + 2 * i] = SHUFFLE(a[4 * h + i], a[4 * h + 2 + i], 0, 1, 8, 9, 4, 5, 12, 13);
    b[4 * h + 2 * i + 1] = SHUFFLE(a[4 * h + i], a[4 * h + 2 + i], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  UNROLL for (int i = 0; i < 4; i++) {
    v[i] = SHUFFLE(b[i], b[4 + i], 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = SHUFFLE(b[i], b[4 + i], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// Which word of a unit lies at i.
INL int word_at(int i) {
#if defined(__AVX512VNNI__)
  return i / 2 % 8 * 8 + i / 16 * 2 + i % 2;
#else
  return i;
#endif
}
// Rows behind the last of the matrix are that one again.
NOINL void fill_panel(Panel to, int type, const u8 *w, i64 row_bytes, int rows, int n, const i8 *grid) {
  TypeInfo t = type_info(type);
  int groups = t.by16 ? 16 : 8;
  for (int r = 0; r < PANEL_ROWS; r += 8) {
    for (i64 b = 0; b * UNIT < n; b++) {
      Unit u[8];
      for (int i = 0; i < 8; i++) unpack_unit(type, w + MIN(r + i, rows - 1) * row_bytes, b, n, grid, &u[i]);
      for (int j = 0; j < 8; j++) {
        i32x8 v[8];
        UNROLL for (int i = 0; i < 8; i++) v[i] = LOAD(i32x8, (u8 *)u[i].v + j * 32);
        transpose8(v);
        UNROLL for (int i = 0; i < 8; i++) STORE(to.words + ((b * 64 + word_at(j * 8 + i)) * PANEL_ROWS + r) * 4, v[i]);
      }
      for (int half = 0; half < groups; half += 8) {
        i32x8 s[8], m[8];
        UNROLL for (int i = 0; i < 8; i++) {
          s[i] = LOAD(i32x8, (f32 *)&u[i].s + half);
          m[i] = LOAD(i32x8, (f32 *)&u[i].m + half);
        }
        transpose8(s);
        transpose8(m);
        UNROLL for (int i = 0; i < 8; i++) {
          STORE(to.s + (b * groups + half + i) * PANEL_ROWS + r, s[i]);
          STORE(to.m + (b * groups + half + i) * PANEL_ROWS + r, m[i]);
        }
      }
    }
  }
}

INL vs four(const i8 *p) { return (vs)((vi){} + LOAD(i32, p)); }
// Where the activations of a group begin; word k of it is UNIT_AT(k · 4) further.
INL const i8 *group_at(const i8 *q, i64 g, int by16) {
  i64 at = g * (by16 ? 16 : 32);
  return q + at / UNIT * UNIT + UNIT_AT(at % UNIT);
}

// With AVX-512 two instructions for each product: unrolled, loads that the compiler moves up push sums to memory.
#if W == 16
#define WORDS _Pragma("clang loop unroll(disable)")
#else
#define WORDS UNROLL
#endif
// `count` tokens times the panel: out[t][register]. Where it is `shifted`, minimums are scales times 2^shift: sums begin with them.
INL void tile(int count, int is_signed, int by16, int narrow, int shifted, Panel panel, int n, const Packed *x,
              vf out[TILE][PANEL_REGS]) {
  const int group = by16 ? 16 : 32;
  vf acc[TILE][PANEL_REGS];
  UNROLL for (int t = 0; t < count; t++) UNROLL for (int p = 0; p < PANEL_REGS; p++) acc[t][p] = (vf){};
  for (i64 g = 0; g < FILLED(n) / group; g++) {
    const u8 *words = panel.words + g * group * PANEL_ROWS;
    vi sums[TILE][PANEL_REGS];
    UNROLL for (int t = 0; t < count; t++) {
      const vi begin = shifted ? ((vi){} + (by16 ? x[t].less16[g] : x[t].less32[g])) << panel.shift : (vi){};
      UNROLL for (int p = 0; p < PANEL_REGS; p++) sums[t][p] = begin;
    }
    if (NARROW && narrow) {
      vh short_sums[TILE][PANEL_REGS];
      UNROLL for (int t = 0; t < count; t++) UNROLL for (int p = 0; p < PANEL_REGS; p++) short_sums[t][p] = (vh){};
      WORDS for (int k = 0; k < group / 4; k++) {
        vu w[PANEL_REGS];
        UNROLL for (int p = 0; p < PANEL_REGS; p++) w[p] = LOAD(vu, words + (k * PANEL_ROWS + p * W) * 4);
        UNROLL for (int t = 0; t < count; t++) {
          vs q = four(group_at(x[t].q, g, by16) + UNIT_AT(k * 4));
          UNROLL for (int p = 0; p < PANEL_REGS; p++) short_sums[t][p] = dot_narrow(short_sums[t][p], w[p], q);
        }
      }
      UNROLL for (int t = 0; t < count; t++) UNROLL for (int p = 0; p < PANEL_REGS; p++) sums[t][p] += widen(short_sums[t][p]);
    } else {
      WORDS for (int k = 0; k < group / 4; k++) {
        vu w[PANEL_REGS];
        UNROLL for (int p = 0; p < PANEL_REGS; p++) w[p] = LOAD(vu, words + (k * PANEL_ROWS + p * W) * 4);
        UNROLL for (int t = 0; t < count; t++) {
          vs q = four(group_at(x[t].q, g, by16) + UNIT_AT(k * 4));
          UNROLL for (int p = 0; p < PANEL_REGS; p++) sums[t][p] = dot_add(is_signed, sums[t][p], w[p], q);
        }
      }
    }
    UNROLL for (int p = 0; p < PANEL_REGS; p++) {
      vf s = LOAD(vf, panel.s + g * PANEL_ROWS + p * W);
      UNROLL for (int t = 0; t < count; t++)
        acc[t][p] = FMA(CONVERT(sums[t][p], vf), s * x[t].d[g * group / 32], acc[t][p]);
      if (is_signed || shifted) continue;
      vf m = LOAD(vf, panel.m + g * PANEL_ROWS + p * W);
      UNROLL for (int t = 0; t < count; t++)
        acc[t][p] = FMA(-m, splat(by16 ? x[t].sum16[g] : x[t].sum32[g]), acc[t][p]);
    }
  }
  UNROLL for (int t = 0; t < count; t++) UNROLL for (int p = 0; p < PANEL_REGS; p++) out[t][p] = acc[t][p];
}
#define DEFINE(name, sgn, by16, narrow, shifted) \
  NOINL void tile_##name(Panel panel, int n, const Packed *x, vf out[TILE][PANEL_REGS]) { \
    tile(TILE, sgn, by16, narrow, shifted, panel, n, x, out); \
  } \
  NOINL void tile_half_##name(Panel panel, int n, const Packed *x, vf out[TILE][PANEL_REGS]) { \
    tile(TILE / 2, sgn, by16, narrow, shifted, panel, n, x, out); \
  }
DEFINE(by32, 0, 0, 0, 0)
DEFINE(by16, 0, 1, 0, 0)
#if SHIFTED
DEFINE(shifted32, 0, 0, 0, 1)
DEFINE(shifted16, 0, 1, 0, 1)
#else
DEFINE(signed, 1, 0, 0, 0)
#endif
#if NARROW
DEFINE(narrow32, 0, 0, 1, 0)
DEFINE(narrow16, 0, 1, 1, 0)
#endif
#undef DEFINE
// `count` tokens of x (TILE, the last again where there are fewer).
INL void multiply_tile(TypeInfo t, int count, Panel panel, int n, const Packed *x, vf out[TILE][PANEL_REGS]) {
  int few = count <= TILE / 2;
#define RUN(name) (few ? tile_half_##name : tile_##name)(panel, n, x, out)
#define BY(name) t.by16 ? RUN(name##16) : RUN(name##32)
#if SHIFTED
  if (t.shift >= 0) { BY(shifted); return; }
#else
  if (t.is_signed) { RUN(signed); return; }
#endif
#if NARROW
  if (t.narrow) { BY(narrow); return; }
#endif
  BY(by);
#undef BY
#undef RUN
}

// panel: W (PANEL_ROWS, n) · x (n, tokens) → (PANEL_ROWS, tokens) for many tokens. For prompts.
//
// The rows are unpacked once to a panel that fits the second-level cache: words of four bytes of a row, interleaved by
// row, so that a register holds one word of each of its rows. Then every token is multiplied with it in tiles. A row's
// sum does not depend on the number of tokens.
#pragma once
#include "fill.h"

INL vs four(const i8 *p) { return (vs)((vi){} + LOAD(i32, p)); }
// Start of a group's activations; word k is UNIT_AT(k · 4) after it.
INL const i8 *group_at(const i8 *q, i64 g, int by16) {
  const i64 at = g * (by16 ? 16 : 32);
  return UNIT_AT(8) == 8 ? q + at : q + at / UNIT * UNIT + UNIT_AT(at % UNIT);
}

// With AVX-512, products take two instructions: unrolled, the compiler would move loads up and spill sums.
#if W == 16
#define WORDS _Pragma("clang loop unroll(disable)")
#else
#define WORDS UNROLL
#endif
// Variants of a panel's sums. SHORT: 16-bit sums over a group; BEGUN: sums begin with −2^shift · Σx; MINS: weights have
// minimums; PLAIN: 32-bit sums where few types need them, with the groups that the panel names.
enum { SIGNED = 1, BY16 = 2, SHORT = 4, BEGUN = 8, MINS = 16, PLAIN = 32 };
#define IS_BY16(how, panel) ((how) & PLAIN ? (panel).by16 : ((how) & BY16) != 0)
#define MOST_WORDS(how) ((how) & (BY16 | PLAIN) ? 4 : 8) // words that a group multiplies without a loop
// `count` tokens times the panel: out[t][register]
INL void tile(int count, int how, Panel panel, int n, const Packed *x, Ahead next, vf out[TILE][PANEL_REGS]) {
  const int by16 = IS_BY16(how, panel), group = by16 ? 16 : 32;
#if W == 8 // sixteen registers: sums of a group, and their operands
  vf(*acc)[PANEL_REGS] = out;
#else
  vf acc[TILE][PANEL_REGS];
#endif
  UNROLL for (int t = 0; t < count; t++) UNROLL for (int p = 0; p < PANEL_REGS; p++) acc[t][p] = (vf){};
  for (i64 g = 0; g < FILLED(n) / group; g++) {
    fetch_step(next, g);
    const u8 *words = panel.words + g * group * PANEL_ROWS;
    vi sums[TILE][PANEL_REGS];
    UNROLL for (int t = 0; t < count; t++) {
      vi begin = {};
      if (how & BEGUN) begin += by16 ? x[t].less16[g] : x[t].less32[g];
      if (how & BEGUN) begin = how & SHORT ? (vi)((vh)begin << (i16)panel.shift) : begin << panel.shift;
      UNROLL for (int p = 0; p < PANEL_REGS; p++) sums[t][p] = begin;
    }
    int word = 0;
    do {
      WORDS for (int k = 0; k < MOST_WORDS(how); k++) {
        vu w[PANEL_REGS];
        UNROLL for (int p = 0; p < PANEL_REGS; p++) w[p] = LOAD(vu, words + ((word + k) * PANEL_ROWS + p * W) * 4);
        UNROLL for (int t = 0; t < count; t++) {
          vs q = four(group_at(x[t].q, g, by16) + UNIT_AT((word + k) * 4));
          UNROLL for (int p = 0; p < PANEL_REGS; p++) {
            if (how & SHORT) sums[t][p] = (vi)dot_narrow((vh)sums[t][p], w[p], q);
            else sums[t][p] = dot_add(how & SIGNED, sums[t][p], w[p], q);
            HOLD(sums[t][p]);
          }
        }
      }
    } while (how & PLAIN && (word += 4) < group / 4);
    UNROLL for (int p = 0; p < PANEL_REGS; p++) {
      vf s = LOAD(vf, panel.s + g * PANEL_ROWS + p * W);
      UNROLL for (int t = 0; t < count; t++) {
        const vi sum = how & SHORT ? widen((vh)sums[t][p]) : sums[t][p];
        acc[t][p] = FMA(CONVERT(sum, vf), s * x[t].d[g * group / 32], acc[t][p]);
      }
      if (!(how & MINS)) continue;
      vf m = LOAD(vf, panel.m + g * PANEL_ROWS + p * W);
      UNROLL for (int t = 0; t < count; t++)
        acc[t][p] = FMA(-m, splat(by16 ? x[t].sum16[g] : x[t].sum32[g]), acc[t][p]);
    }
  }
  UNROLL for (int t = 0; t < count; t++) UNROLL for (int p = 0; p < PANEL_REGS; p++) out[t][p] = acc[t][p];
}
#if NARROW && SHIFTED
#define TILES(X) \
  X(plain, PLAIN | MINS) X(signed, SIGNED) X(short32, SHORT | MINS) X(short16, SHORT | MINS | BY16) \
  X(begun32, SHORT | BEGUN) X(begun16, SHORT | BEGUN | BY16) X(middle32, SHORT | BEGUN | MINS)
#elif NARROW
#define TILES(X) \
  X(plain, PLAIN | MINS) X(signed, SIGNED) X(short32, SHORT | MINS) X(short16, SHORT | MINS | BY16)
#elif SHIFTED
#define TILES(X) X(plain32, MINS) X(plain16, MINS | BY16) X(begun32, BEGUN) X(begun16, BEGUN | BY16)
#else
#define TILES(X) X(plain32, MINS) X(plain16, MINS | BY16) X(signed, SIGNED)
#endif
#define DEFINE(name, how) \
  NOINL void tile_##name(Panel panel, int n, const Packed *x, Ahead next, vf out[TILE][PANEL_REGS]) { \
    tile(TILE, how, panel, n, x, next, out); \
  }
TILES(DEFINE)
#undef DEFINE
#if W == 16
#define DEFINE(name, how) \
  NOINL void tile_half_##name(Panel panel, int n, const Packed *x, Ahead next, vf out[TILE][PANEL_REGS]) { \
    tile(TILE / 2, how, panel, n, x, next, out); \
  }
TILES(DEFINE)
#undef DEFINE
#define TILE_OF(name) (count <= TILE / 2 ? tile_half_##name : tile_##name)
#else
#define TILE_OF(name) tile_##name // a small tile wastes little if tokens are few
#endif
INL int how_of(TypeInfo t) {
  if (t.is_signed) return SIGNED;
  const int by16 = t.by16 ? BY16 : 0, is_short = NARROW && (SHIFTED ? t.bits > 0 : is_narrow(t)) ? SHORT : 0;
  if (takes_off(t)) return by16 | is_short | BEGUN;
  if (NARROW && !is_short) return PLAIN | MINS;
  return by16 | is_short | MINS | (moves_to_middle(t) ? BEGUN : 0);
}
#if AVXVNNI
#define TILE_MAX 6 // enough sums to hide the latency of an addition
// The same with AVX-VNNI, and with the same bits. The compiler would keep `acc` in registers and spill others.
#define IN_MEMORY __asm__ volatile("" ::: "memory")
WITH_AVXVNNI NOINL void tile_vnni(int how, const Panel *panel, int n, const Packed *x, Ahead next, vf acc[TILE_MAX][PANEL_REGS]) {
  const int by16 = (how & BY16) != 0;
  const i64 filled = FILLED(n), group = by16 ? 16 : 32; // packed data has the same offsets in each token
  const i64 d = filled, offsets = d + filled / 8 * (by16 ? 2 : 1), less = offsets + filled * 3 / 8;
  const vh factor = (vh){} + (i16)(how & BEGUN ? 1 << panel->shift : 0);
  const u8 *words = panel->words;
  const i8 *q[TILE_MAX];
  UNROLL for (int t = 0; t < TILE_MAX; t++) {
    q[t] = x[t].q;
    UNROLL for (int p = 0; p < PANEL_REGS; p++) acc[t][p] = (vf){};
  }
  for (i64 g = 0, at = 0; g < filled / group; g++) {
    fetch_step(next, g);
    vi sums[TILE_MAX][PANEL_REGS];
    UNROLL for (int t = 0; t < TILE_MAX; t++)
      sums[t][0] = sums[t][1] = dot_words((vi){} + EXACT, (vh)((vi){} + LOAD(i32, q[t] + less + 4 * g)), factor);
    _Pragma("clang loop unroll(disable)") for (const i64 end = at + group; at < end; at += 16, words += 4 * PANEL_ROWS * 4) {
      UNROLL for (int k = 0; k < 4; k++) {
        vu w[PANEL_REGS];
        UNROLL for (int p = 0; p < PANEL_REGS; p++) w[p] = LOAD(vu, words + (k * PANEL_ROWS + p * W) * 4);
        UNROLL for (int t = 0; t < TILE_MAX; t++) {
          const vs v = four(q[t] + at + k * 4);
          UNROLL for (int p = 0; p < PANEL_REGS; p++) {
            sums[t][p] = vnni_add(sums[t][p], w[p], v);
            HOLD(sums[t][p]);
          }
        }
      }
    }
    IN_MEMORY;
    vf s[PANEL_REGS];
    UNROLL for (int p = 0; p < PANEL_REGS; p++) s[p] = LOAD(vf, panel->s + g * PANEL_ROWS + p * W);
    UNROLL for (int t = 0; t < TILE_MAX; t++) {
      const vf scale = splat(LOAD(f32, q[t] + d + (g >> by16) * 4));
      UNROLL for (int p = 0; p < PANEL_REGS; p++) acc[t][p] = FMA(exact_float(sums[t][p]), s[p] * scale, acc[t][p]);
    }
    IN_MEMORY;
    if (!(how & MINS)) continue;
    UNROLL for (int p = 0; p < PANEL_REGS; p++) s[p] = -LOAD(vf, panel->m + g * PANEL_ROWS + p * W);
    UNROLL for (int t = 0; t < TILE_MAX; t++) {
      const vf offset = splat(LOAD(f32, q[t] + offsets + 4 * g));
      UNROLL for (int p = 0; p < PANEL_REGS; p++) acc[t][p] = FMA(s[p], offset, acc[t][p]);
    }
    IN_MEMORY;
  }
}
#elif I8MM
#define TILE_MAX 8
// The same with I8MM, and with the same bits: a register holds two rows' or tokens' results, from two words of each.
WITH_I8MM NOINL void tile_i8mm(int how, const Panel *panel, int n, const Packed *x, Ahead next, vf acc[TILE_MAX][PANEL_REGS]) {
  const int by16 = (how & BY16) != 0;
  const i64 filled = FILLED(n), group = by16 ? 16 : 32;
  const u8 *words = panel->words;
  UNROLL for (int t = 0; t < TILE_MAX; t++) UNROLL for (int p = 0; p < PANEL_REGS; p++) acc[t][p] = (vf){};
  for (i64 g = 0, at = 0; g < filled / group; g++) {
    vi sums[TILE_MAX / 2][PANEL_ROWS / 2];
    UNROLL for (int t = 0; t < TILE_MAX / 2; t++) UNROLL for (int r = 0; r < PANEL_ROWS / 2; r++) sums[t][r] = (vi){};
    _Pragma("clang loop unroll(disable)") for (const i64 end = at + group; at < end; at += 8, words += 2 * PANEL_ROWS * 4) {
      vu w[PANEL_ROWS / 2];
      UNROLL for (int p = 0; p < PANEL_REGS; p++) {
        const vi one = LOAD(vi, words + p * W * 4), next = LOAD(vi, words + (PANEL_ROWS + p * W) * 4);
        w[2 * p] = (vu)SHUFFLE(one, next, 0, 4, 1, 5);
        w[2 * p + 1] = (vu)SHUFFLE(one, next, 2, 6, 3, 7);
      }
      UNROLL for (int t = 0; t < TILE_MAX / 2; t++) {
        const i8x8 one = LOAD(i8x8, x[2 * t].q + at), next = LOAD(i8x8, x[2 * t + 1].q + at);
        const vs tokens = SHUFFLE(one, next, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        UNROLL for (int r = 0; r < PANEL_ROWS / 2; r++) sums[t][r] = i8mm_add(sums[t][r], w[r], tokens);
      }
    }
    UNROLL for (int p = 0; p < PANEL_REGS; p++) {
      const vf s = LOAD(vf, panel->s + g * PANEL_ROWS + p * W);
      UNROLL for (int t = 0; t < TILE_MAX; t++) {
        const vi a = sums[t / 2][2 * p], b = sums[t / 2][2 * p + 1];
        const vi sum = t % 2 ? SHUFFLE(a, b, 1, 3, 5, 7) : SHUFFLE(a, b, 0, 2, 4, 6);
        acc[t][p] = FMA(CONVERT(sum, vf), s * x[t].d[g >> by16], acc[t][p]);
      }
    }
    if (how & MINS) UNROLL for (int t = 0; t < TILE_MAX; t++) {
      const vf offset = splat((by16 ? x[t].sum16 : x[t].sum32)[g]);
      UNROLL for (int p = 0; p < PANEL_REGS; p++)
        acc[t][p] = FMA(-LOAD(vf, panel->m + g * PANEL_ROWS + p * W), offset, acc[t][p]);
    }
  }
}
#else
#define TILE_MAX TILE
#endif
INL int tile_tokens(Panel panel) { return panel.dots ? TILE_MAX : TILE; }
// `count` tokens of x (tile_tokens pointers; the last is repeated if there are fewer).
INL void multiply_tile(TypeInfo t, int count, Panel panel, int n, const Packed *x, Ahead next, vf out[TILE_MAX][PANEL_REGS]) {
#if AVXVNNI
  if (panel.dots) return tile_vnni(t.is_signed ? BEGUN : how_of(t) | (t.by16 ? BY16 : 0), &panel, n, x, next, out);
#elif I8MM
  if (panel.dots) return tile_i8mm(how_of(t), &panel, n, x, next, out);
#endif
  switch (how_of(t)) {
#define CASE(name, how) case how: TILE_OF(name)(panel, n, x, next, out); break;
    TILES(CASE)
#undef CASE
  }
}

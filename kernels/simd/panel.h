// panel: W (PANEL_ROWS, n) · x (n, tokens) → (PANEL_ROWS, tokens) for many tokens. For prompts.
//
// The rows are unpacked once to a panel that fits the second-level cache: words of four bytes of a row, interleaved by
// row, so that a register holds one word of each of its rows. Then every token is multiplied with it in tiles. A row's
// sum does not depend on the number of tokens.
#pragma once
#include "amx.h"
#include "fill.h"

INL vs four(const i8 *p) { return (vs)((vi){} + LOAD(i32, p)); }
// Offset of a group's activations; word k is UNIT_AT(k · 4) after it.
INL i64 group_at(i64 g, int by16) {
  const i64 at = g * (by16 ? 16 : 32);
  return UNIT_AT(8) == 8 ? at : at / UNIT * UNIT + UNIT_AT(at % UNIT);
}

// With AVX-512, products take two instructions: unrolled, the compiler would move loads up and spill sums.
#if W == 16
#define WORDS _Pragma("clang loop unroll(disable)")
#else
#define WORDS UNROLL
#endif
// Variants of a panel's sums. SHORT: 16-bit sums over a group; BEGUN: sums begin with −2^shift · Σx; MINS: weights have
// minimums; PLAIN: 32-bit sums where few types need them, with the groups that the panel names; FACTORS: scales of groups
// are whole numbers, and 16-bit sums times them whole numbers below 2^24, so that units have one scale.
enum { SIGNED = 1, BY16 = 2, SHORT = 4, BEGUN = 8, MINS = 16, PLAIN = 32, FACTORS = 128 };
#define IS_BY16(how, panel) ((how) & PLAIN ? (panel).by16 : ((how) & BY16) != 0)
#define MOST_WORDS(how) ((how) & (BY16 | PLAIN) ? 4 : 8) // words that a group multiplies without a loop
#if W == 8 // The compiler would keep `acc` in registers and spill others.
#define IN_MEMORY __asm__ volatile("" ::: "memory")
#else
#define IN_MEMORY
#endif
typedef vf TileSums[TILE][PANEL_REGS];
// `count` tokens times the panel: out[t][register]. parts: with FACTORS, sums of a unit without its scale.
INL void tile(int count, int how, const Panel *panel, int n, const Packed *x, Ahead next, TileSums parts, TileSums out) {
  const int by16 = IS_BY16(how, *panel), shift = panel->shift;
  const i64 filled = FILLED(n), group = by16 ? 16 : 32; // packed data has the same offsets in each token
  const i64 d = filled, offsets = d + filled / 8 * (by16 ? 2 : 1), less = offsets + filled * 3 / 8;
  const u8 *words = panel->words;
  const f32 *s = panel->s, *m = panel->m, *units = panel->d;
  const i8 *q[TILE];
#if W == 8 // sixteen registers: sums of a group, and their operands
  vf(*acc)[PANEL_REGS] = out;
#else
  TileSums acc;
#endif
  UNROLL for (int t = 0; t < count; t++) {
    q[t] = x[t].q;
    UNROLL for (int p = 0; p < PANEL_REGS; p++) {
      acc[t][p] = (vf){};
      if (how & FACTORS) parts[t][p] = (vf){};
    }
  }
  for (i64 g = 0; g < filled / group; g++, s += PANEL_ROWS, m += PANEL_ROWS) {
    fetch_step(next, g);
    vi sums[TILE][PANEL_REGS];
    UNROLL for (int t = 0; t < count; t++) {
      vi begin = {};
      if (how & BEGUN) begin += LOAD(i32, q[t] + less + 4 * g);
      if (how & BEGUN) begin = how & SHORT ? (vi)((vh)begin << (i16)shift) : begin << shift;
      UNROLL for (int p = 0; p < PANEL_REGS; p++) sums[t][p] = begin;
    }
    const i64 at = group_at(g, by16);
    int word = 0;
    do {
      WORDS for (int k = 0; k < MOST_WORDS(how); k++, words += PANEL_ROWS * 4) {
        vu w[PANEL_REGS];
        UNROLL for (int p = 0; p < PANEL_REGS; p++) w[p] = LOAD(vu, words + p * W * 4);
        UNROLL for (int t = 0; t < count; t++) {
          const vs v = four(q[t] + at + UNIT_AT((word + k) * 4));
          UNROLL for (int p = 0; p < PANEL_REGS; p++) {
            if (how & SHORT) sums[t][p] = (vi)dot_narrow((vh)sums[t][p], w[p], v);
            else sums[t][p] = dot_add(how & SIGNED, sums[t][p], w[p], v);
            HOLD(sums[t][p]);
          }
        }
      }
    } while (how & PLAIN && (word += 4) < group / 4);
    IN_MEMORY;
    UNROLL for (int t = 0; t < count; t++) {
      const vf scale = splat(LOAD(f32, q[t] + d + (g >> by16) * 4));
      UNROLL for (int p = 0; p < PANEL_REGS; p++) {
        if (how & FACTORS) {
          const vi all = dot_words((vi){}, (vh)sums[t][p], LOAD(vh, s + p * W));
          parts[t][p] = FMA(CONVERT(all, vf), scale, parts[t][p]);
        } else {
          const vi all = how & SHORT ? widen((vh)sums[t][p]) : sums[t][p];
          acc[t][p] = FMA(CONVERT(all, vf), LOAD(vf, s + p * W) * scale, acc[t][p]);
        }
      }
    }
    IN_MEMORY;
    if (how & MINS) UNROLL for (int t = 0; t < count; t++) {
      const vf offset = splat(LOAD(f32, q[t] + offsets + 4 * g));
      UNROLL for (int p = 0; p < PANEL_REGS; p++) acc[t][p] = FMA(-LOAD(vf, m + p * W), offset, acc[t][p]);
    }
    IN_MEMORY;
    if (!(how & FACTORS) || (g + 1) * group % UNIT != 0) continue;
    UNROLL for (int t = 0; t < count; t++) UNROLL for (int p = 0; p < PANEL_REGS; p++) {
      acc[t][p] = FMA(parts[t][p], LOAD(vf, units + p * W), acc[t][p]);
      parts[t][p] = (vf){};
    }
    units += PANEL_ROWS;
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
#if W == 8
#define FACTOR_TILES(X) \
  X(factors32, FACTORS | SHORT | MINS) X(factors16, FACTORS | SHORT | BEGUN | BY16) \
  X(factors_middle, FACTORS | SHORT | BEGUN | MINS)
#else
#define FACTOR_TILES(X)
#endif
#define DEFINE_FOR(name, count, how) \
  NOINL void name(const Panel *panel, int n, const Packed *x, Ahead next, TileSums out) { \
    TileSums parts; \
    tile(count, how, panel, n, x, next, parts, out); \
  }
#define DEFINE(name, how) DEFINE_FOR(tile_##name, TILE, how)
TILES(DEFINE)
FACTOR_TILES(DEFINE)
#undef DEFINE
#if W == 16
#define DEFINE(name, how) DEFINE_FOR(tile_half_##name, TILE / 2, how)
TILES(DEFINE)
#undef DEFINE
#undef DEFINE_FOR
#define TILE_OF(name) (count <= TILE / 2 ? tile_half_##name : tile_##name)
#else
#undef DEFINE_FOR
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
typedef vf VnniSums[TILE_MAX][PANEL_REGS];
// The same with AVX-VNNI, and with the same bits.
WITH_AVXVNNI INL void vnni_tile(int how, const Panel *panel, int n, const Packed *x, Ahead next, VnniSums parts, VnniSums acc) {
  const int by16 = (how & BY16) != 0;
  const i64 filled = FILLED(n), group = by16 ? 16 : 32; // packed data has the same offsets in each token
  const i64 d = filled, offsets = d + filled / 8 * (by16 ? 2 : 1), less = offsets + filled * 3 / 8;
  const vh factor = (vh){} + (i16)(how & BEGUN ? 1 << panel->shift : 0);
  const u8 *words = panel->words;
  const i8 *q[TILE_MAX];
  UNROLL for (int t = 0; t < TILE_MAX; t++) {
    q[t] = x[t].q;
    UNROLL for (int p = 0; p < PANEL_REGS; p++) acc[t][p] = (vf){};
    if (how & FACTORS) UNROLL for (int p = 0; p < PANEL_REGS; p++) parts[t][p] = (vf){};
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
      UNROLL for (int p = 0; p < PANEL_REGS; p++) {
        if (how & FACTORS) parts[t][p] = FMA(exact_float(sums[t][p]) * s[p], scale, parts[t][p]);
        else acc[t][p] = FMA(exact_float(sums[t][p]), s[p] * scale, acc[t][p]);
      }
    }
    IN_MEMORY;
    if (how & MINS) UNROLL for (int p = 0; p < PANEL_REGS; p++) s[p] = -LOAD(vf, panel->m + g * PANEL_ROWS + p * W);
    if (how & MINS) UNROLL for (int t = 0; t < TILE_MAX; t++) {
      const vf offset = splat(LOAD(f32, q[t] + offsets + 4 * g));
      UNROLL for (int p = 0; p < PANEL_REGS; p++) acc[t][p] = FMA(s[p], offset, acc[t][p]);
    }
    IN_MEMORY;
    if (how & FACTORS && at % UNIT == 0) UNROLL for (int p = 0; p < PANEL_REGS; p++) {
      const vf unit = LOAD(vf, panel->d + (at / UNIT - 1) * PANEL_ROWS + p * W);
      UNROLL for (int t = 0; t < TILE_MAX; t++) {
        acc[t][p] = FMA(parts[t][p], unit, acc[t][p]);
        parts[t][p] = (vf){};
      }
    }
  }
}
WITH_AVXVNNI NOINL void tile_vnni(int how, const Panel *panel, int n, const Packed *x, Ahead next, VnniSums out) {
  vnni_tile(how & ~FACTORS, panel, n, x, next, 0, out);
}
WITH_AVXVNNI NOINL void tile_vnni_factors(int how, const Panel *panel, int n, const Packed *x, Ahead next, VnniSums out) {
  VnniSums parts;
  __asm__ volatile("" ::"r"(parts) : "memory"); // else IN_MEMORY would not hold for a local variable
  vnni_tile(how | FACTORS, panel, n, x, next, parts, out);
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
#elif AMX
#define TILE_MAX AMX_TOKENS
// The same with AMX, and with the same bits.
WITH_AMX NOINL void tile_amx(int how, const Panel *panel, int n, const Packed *x, Ahead next, vf acc[TILE_MAX][PANEL_REGS]) {
  AmxTokens tokens __attribute__((aligned(64)));
  AmxSums sums[2] __attribute__((aligned(64)));
  const int by16 = (how & BY16) != 0;
  const i64 filled = FILLED(n), group = by16 ? 16 : 32; // packed data has the same offsets in each token
  const i64 d = filled, offsets = d + filled / 8 * (by16 ? 2 : 1), less = offsets + filled * 3 / 8;
  const u8 *words = panel->words;
  const f32 *s = panel->s, *m = panel->m;
  for (int t = 0; t < AMX_TOKENS; t++) UNROLL for (int p = 0; p < PANEL_REGS; p++) acc[t][p] = (vf){};
  for (i64 g = 0, at = 0; g < filled / group; g++, at += group, s += PANEL_ROWS, m += PANEL_ROWS) {
    const int odd = g % 2;
    fetch_step(next, g);
    if (at % UNIT == 0) for (int t = 0; t < AMX_TOKENS; t++) amx_token(x[t].q + at, t, tokens);
    if (!odd) for (int k = 0; k < 2; k++, words += group * PANEL_ROWS) { // two groups, whose latencies overlap
      const i64 i = at % UNIT + k * group;
      const i8 *from = tokens[i / 32][0] + i % 32;
      if (k) amx_group(1, by16, from, words, sums[1]);
      else amx_group(0, by16, from, words, sums[0]);
    }
    for (int t = 0; t < AMX_TOKENS; t++) {
      const i8 *q = x[t].q;
      const vf scale = splat(LOAD(f32, q + d + (g >> by16) * 4)), offset = splat(LOAD(f32, q + offsets + 4 * g));
      vi begin = {};
      if (how & BEGUN) begin = (begin + LOAD(i32, q + less + 4 * g)) << panel->shift;
      UNROLL for (int p = 0; p < PANEL_REGS; p++) {
        vf v = FMA(CONVERT(begin + LOAD(vi, sums[odd][p][t]), vf), LOAD(vf, s + p * W) * scale, acc[t][p]);
        if (how & MINS) v = FMA(-LOAD(vf, m + p * W), offset, v);
        acc[t][p] = v;
      }
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
  const int how = t.is_signed ? BEGUN : how_of(t) | (t.by16 ? BY16 : 0);
  if (panel.dots) return (panel.d ? tile_vnni_factors : tile_vnni)(how, &panel, n, x, next, out);
#elif I8MM
  if (panel.dots) return tile_i8mm(how_of(t), &panel, n, x, next, out);
#elif AMX
  if (panel.dots && count > TILE) return tile_amx(how_of(t), &panel, n, x, next, out);
#endif
  switch (how_of(t) | (panel.d ? FACTORS : 0)) {
#define CASE(name, how) case how: TILE_OF(name)(&panel, n, x, next, out); break;
    TILES(CASE)
    FACTOR_TILES(CASE)
#undef CASE
  }
}

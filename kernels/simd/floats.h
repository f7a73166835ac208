// floats: W (rows, n) · x (n, tokens) → (rows, tokens) in float32, for float weights and for precise runs.
//
// In rows, for decode and all precise runs: a sum runs along a row in two chains of registers for any tile, so one
// token gives the same bits as many. In panels, for prompts with float weights: a sum runs value by value.
#pragma once
#include "panel.h"
#include "words.h"

#if W == 16
#define FLOAT_ROWS 4
#else
#define FLOAT_ROWS 2
#endif
#define FLOAT_TOKENS 3

INL vf load_weights(int type, const u8 *p) {
  if (type == F32) return LOAD(vf, p);
  if (type == F16) return halves((const u16 *)p);
  typedef u16 words VEC(2 * W);
  typedef u32 wide VEC(4 * W);
  return (vf)(CONVERT(LOAD(words, p), wide) << 16);
}

// y[t · stride + r] for `tokens` rows of x and `rows` rows of w. The end of a row is padded with zeros.
INL void float_tile(int type, int rows, int tokens, f32 *y, i64 stride, const u8 *const *w, const f32 *const *x, int n) {
  enum { STEP = 2 * W };
  const int size = type == F32 ? 4 : 2;
  vf acc[FLOAT_ROWS][FLOAT_TOKENS][2];
  u8 rest_w[FLOAT_ROWS][STEP * 4];
  f32 rest_x[FLOAT_TOKENS][STEP];
  const u8 *from_w[FLOAT_ROWS];
  const f32 *from_x[FLOAT_TOKENS];
  UNROLL for (int r = 0; r < rows; r++) from_w[r] = w[r];
  UNROLL for (int t = 0; t < tokens; t++) from_x[t] = x[t];
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int t = 0; t < tokens; t++) acc[r][t][0] = acc[r][t][1] = (vf){};
  for (i64 i = 0; i < n; i += STEP) {
    if (__builtin_expect(i + STEP > n, 0)) {
      const i64 left = n - i;
      for (int r = 0; r < rows; r++)
        for (int k = 0; k < STEP * size; k++) rest_w[r][k] = k < left * size ? w[r][i * size + k] : 0;
      for (int t = 0; t < tokens; t++) for (int k = 0; k < STEP; k++) rest_x[t][k] = k < left ? x[t][i + k] : 0;
      UNROLL for (int r = 0; r < rows; r++) from_w[r] = rest_w[r];
      UNROLL for (int t = 0; t < tokens; t++) from_x[t] = rest_x[t];
    }
    UNROLL for (int c = 0; c < 2; c++) {
      vf weights[FLOAT_ROWS];
      if (tokens == 1 && rows > 1) UNROLL for (int r = 0; r < rows; r++)
        __builtin_prefetch(from_w[r] + ((i64)rows * n + c * W) * size);
      UNROLL for (int r = 0; r < rows; r++) weights[r] = load_weights(type, from_w[r] + c * W * size);
      UNROLL for (int t = 0; t < tokens; t++) {
        vf v = LOAD(vf, from_x[t] + c * W);
        UNROLL for (int r = 0; r < rows; r++) acc[r][t][c] = FMA(weights[r], v, acc[r][t][c]);
      }
    }
    UNROLL for (int r = 0; r < rows; r++) from_w[r] += STEP * size;
    UNROLL for (int t = 0; t < tokens; t++) from_x[t] += STEP;
  }
  UNROLL for (int t = 0; t < tokens; t++) UNROLL for (int r = 0; r < rows; r++)
    y[t * stride + r] = sum(acc[r][t][0] + acc[r][t][1]);
}
#define DEFINE(name, type, rows, tokens) \
  NOINL void floats_##name(f32 *y, i64 stride, const u8 *const *w, const f32 *const *x, int n) { \
    float_tile(type, rows, tokens, y, stride, w, x, n); \
  }
DEFINE(one_f32, F32, 1, 1)
DEFINE(one_f16, F16, 1, 1)
DEFINE(one_bf16, BF16, 1, 1)
DEFINE(rows_f32, F32, FLOAT_ROWS, 1)
DEFINE(rows_f16, F16, FLOAT_ROWS, 1)
DEFINE(tile, F32, FLOAT_ROWS, FLOAT_TOKENS)
#undef DEFINE
// A token is multiplied by several rows at once if a matrix has few, short rows. Other matrices are read as one stream:
// several rows at once would divide it and halve the speed.
#define SHORT_ROW 1024
#define SMALL_MATRIX_ROWS 64

// One tile of at most FLOAT_ROWS rows and FLOAT_TOKENS tokens; several tokens only with float32 weights.
INL void multiply_floats(int type, int rows, int tokens, f32 *y, i64 stride, const u8 *const *w, const f32 *const *x, int n, int together) {
  if (tokens == 1) {
    if (rows == FLOAT_ROWS && together && type != BF16)
      return (type == F32 ? floats_rows_f32 : floats_rows_f16)(y, stride, w, x, n);
    for (int r = 0; r < rows; r++) {
      if (type == F32) floats_one_f32(y + r, stride, w + r, x, n);
      else if (type == F16) floats_one_f16(y + r, stride, w + r, x, n);
      else floats_one_bf16(y + r, stride, w + r, x, n);
    }
    return;
  }
  const u8 *some_w[FLOAT_ROWS];
  const f32 *some_x[FLOAT_TOKENS];
  f32 out[FLOAT_TOKENS * FLOAT_ROWS];
  for (int r = 0; r < FLOAT_ROWS; r++) some_w[r] = w[MIN(r, rows - 1)];
  for (int t = 0; t < FLOAT_TOKENS; t++) some_x[t] = x[MIN(t, tokens - 1)];
  floats_tile(out, FLOAT_ROWS, some_w, some_x, n);
  for (int t = 0; t < tokens; t++)
    for (int r = 0; r < rows; r++) y[t * stride + r] = out[t * FLOAT_ROWS + r];
}

// --- prompts with float weights: PANEL_ROWS rows as floats, side by side, times many tokens ---

#if W == 16
#define FLOAT_TILE 12
#elif W == 8
#define FLOAT_TILE 6
#elif PLAIN_FLOATS
#define FLOAT_TILE 4
#else
#define FLOAT_TILE 8
#endif

// to: (n padded to 8, PANEL_ROWS). Rows after the last repeat it. As words: (n / 2 padded to 8, PANEL_ROWS, 2), and
// after the units that they fill, the scales (n / UNIT, PANEL_ROWS).
NOINL void fill_floats(f32 *to, int type, const u8 *w, i64 row_bytes, int rows, int n, const i8 *grid, int as_words) {
  const TypeInfo t = type_info(type);
  f32 *scales = to + FILLED(n) / 2 * PANEL_ROWS;
  for (int r = 0; r < PANEL_ROWS; r += 8) {
    for (int first = 0; first < n; first += UNIT) {
      f32 values[8][UNIT];
      int count = MIN(UNIT, n - first);
      for (int i = 0; i < 8; i++) {
        for (int k = count / 8 * 8; k < UNIT; k++) values[i][k] = 0;
        unpack_floats(type, w + MIN(r + i, rows - 1) * row_bytes + first / t.len * t.bytes, count, grid, values[i]);
        if (as_words) scales[first / UNIT * PANEL_ROWS + r + i] = unit_words((i16 *)values[i], values[i]);
      }
      if (as_words) count = (count + 1) / 2;
      f32 *at = to + (i64)(as_words ? first / 2 : first) * PANEL_ROWS + r;
      for (int k = 0; k < count; k += 8, at += 8 * PANEL_ROWS) {
        i32x8 v[8];
        UNROLL for (int i = 0; i < 8; i++) v[i] = LOAD(i32x8, values[i] + k);
        transpose8(v);
        UNROLL for (int i = 0; i < 8; i++) STORE(at + i * PANEL_ROWS, v[i]);
      }
    }
  }
}

// `count` tokens times the panel: out[token][row]. Prefetches the following tokens.
INL void panel_tile(int count, int type, const void *panel, int n, const f32 *const *x, vf out[FLOAT_TILE][PANEL_REGS]) {
  const int size = type == F32 ? 4 : 2;
  vf acc[FLOAT_TILE][PANEL_REGS];
  const f32 *from[FLOAT_TILE];
  UNROLL for (int t = 0; t < count; t++) {
    from[t] = x[t];
    UNROLL for (int p = 0; p < PANEL_REGS; p++) acc[t][p] = (vf){};
  }
  for (i64 first = 0; first < n; first += 16) {
    UNROLL for (int t = 0; t < count; t++) __builtin_prefetch(from[t] + (i64)FLOAT_TILE * n + first, 0, 2);
    _Pragma("clang loop unroll(disable)") for (i64 k = first; k < MIN(first + 16, n); k++, panel += PANEL_ROWS * size) {
      vf w[PANEL_REGS];
      UNROLL for (int p = 0; p < PANEL_REGS; p++) w[p] = load_weights(type, panel + p * W * size);
      UNROLL for (int t = 0; t < count; t++) {
        const vf v = splat(from[t][k]);
        UNROLL for (int p = 0; p < PANEL_REGS; p++) acc[t][p] = FMA(w[p], v, acc[t][p]);
      }
    }
  }
  UNROLL for (int t = 0; t < count; t++) UNROLL for (int p = 0; p < PANEL_REGS; p++) out[t][p] = acc[t][p];
}
#define DEFINE(name, count, type) \
  NOINL void panel_tile_##name(const void *panel, int n, const f32 *const *x, vf out[FLOAT_TILE][PANEL_REGS]) { \
    panel_tile(count, type, panel, n, x, out); \
  }
DEFINE(whole, FLOAT_TILE, F32)
DEFINE(most, FLOAT_TILE * 2 / 3, F32)
DEFINE(third, FLOAT_TILE / 3, F32)
DEFINE(one_f32, 1, F32)
DEFINE(one_f16, 1, F16)
#undef DEFINE

#if WORD_PANELS
// The same with words: sums of a unit are integers. x: from row_words
INL void words_tile(int count, const f32 *panel, int n, const u8 *const *x, vf out[FLOAT_TILE][PANEL_REGS]) {
  const f32 *scales = panel + FILLED(n) / 2 * PANEL_ROWS;
  const u8 *from[FLOAT_TILE];
  UNROLL for (int t = 0; t < count; t++) {
    from[t] = x[t];
    UNROLL for (int p = 0; p < PANEL_REGS; p++) out[t][p] = (vf){};
  }
  for (i64 first = 0; first < n; first += UNIT, scales += PANEL_ROWS) {
    vi acc[FLOAT_TILE][PANEL_REGS];
    UNROLL for (int t = 0; t < count; t++) UNROLL for (int p = 0; p < PANEL_REGS; p++) acc[t][p] = (vi){};
    const i64 end = 2 * MIN(first + UNIT, n);
    for (i64 i = 2 * first; i < end; i += 64) {
      UNROLL for (int t = 0; t < count; t++) __builtin_prefetch(from[t] + FLOAT_TILE * WORD_BYTES(n) + i, 0, 2);
      _Pragma("clang loop unroll(disable)") for (i64 k = i; k < MIN(i + 64, end); k += 4, panel += PANEL_ROWS) {
        vh w[PANEL_REGS];
        UNROLL for (int p = 0; p < PANEL_REGS; p++) w[p] = LOAD(vh, panel + p * W);
        UNROLL for (int t = 0; t < count; t++) {
          const vh pair = (vh)((vi){} + LOAD(i32, from[t] + k));
          UNROLL for (int p = 0; p < PANEL_REGS; p++) {
            acc[t][p] = dot_words(acc[t][p], w[p], pair);
            HOLD(acc[t][p]);
          }
        }
      }
    }
    UNROLL for (int p = 0; p < PANEL_REGS; p++) {
      const vf s = LOAD(vf, scales + p * W);
      UNROLL for (int t = 0; t < count; t++) {
        const f32 d = LOAD(f32, from[t] + FILLED(n) * 2 + first / UNIT * 4);
        out[t][p] = FMA(CONVERT(acc[t][p], vf) * s, splat(d), out[t][p]);
      }
    }
  }
}
#define DEFINE(name, count) \
  NOINL void words_tile_##name(const f32 *panel, int n, const u8 *const *x, vf out[FLOAT_TILE][PANEL_REGS]) { \
    words_tile(count, panel, n, x, out); \
  }
DEFINE(whole, FLOAT_TILE)
DEFINE(half, FLOAT_TILE / 2)
#if AVXVNNI
WITH_AVXVNNI DEFINE(vnni, FLOAT_TILE) // a step is one instruction: the compiler finds it
#endif
#undef DEFINE
#endif

// `count` tokens of x (FLOAT_TILE pointers; the last is repeated if there are fewer), as floats or as words.
INL void multiply_panel(int count, int as_words, int vnni, const f32 *panel, int n, const u8 *const *x,
                        vf out[FLOAT_TILE][PANEL_REGS]) {
#if WORD_PANELS
  if (as_words) {
#if AVXVNNI
    if (vnni) return words_tile_vnni(panel, n, x, out);
#endif
    return (count > FLOAT_TILE / 2 ? words_tile_whole : words_tile_half)(panel, n, x, out);
  }
#endif
  const f32 *const *floats = (const f32 *const *)x;
  if (count > FLOAT_TILE * 2 / 3) panel_tile_whole(panel, n, floats, out);
  else if (count > FLOAT_TILE / 3) panel_tile_most(panel, n, floats, out);
  else if (count == 1) panel_tile_one_f32(panel, n, floats, out);
  else panel_tile_third(panel, n, floats, out);
}

// interleaved_floats: products with q8_0 rows interleaved in groups of eight, as in interleaved.h, in float32. For
// small models.
//
// A register holds two values of each of W / 2 rows, as floats with their scale applied, which is exact. It is
// multiplied by the same two values of a token. So a row has two sums, over even and odd values: one token, for which
// weights stay in registers, gives the same bits as many, for which they are unpacked to a panel.
#pragma once
#include "floats.h"
#include "interleaved.h"

#define INTERLEAVED_REGS (16 / W) // for eight rows
#define PAIRS_ROWS (W == 16 ? 16 : 8) // rows of a panel: two registers per pair of values, first halves first if W is 4
#define ALONE_GROUPS (W == 4 ? 1 : 4) // groups of eight rows at once for one token: independent sums
#define PAIRS_STRIDE 16 // stride of results

typedef u64 vpair VEC(4 * W);
INL vf splat_pair(const f32 *p) { return (vf)((vpair){} + LOAD(u64, p)); }

// The scales of a block, each next to the two values of its row.
INL void interleaved_scales(const u8 *w, vf s[INTERLEAVED_REGS]) {
  const f32x4 low = half4(LOAD(u16x4, w)), high = half4(LOAD(u16x4, w + 8));
#if W == 16
  s[0] = SHUFFLE(low, high, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
#elif W == 8
  s[0] = SHUFFLE(low, low, 0, 0, 1, 1, 2, 2, 3, 3);
  s[1] = SHUFFLE(high, high, 0, 0, 1, 1, 2, 2, 3, 3);
#else
  s[0] = SHUFFLE(low, low, 0, 0, 1, 1);
  s[1] = SHUFFLE(low, low, 2, 2, 3, 3);
  s[2] = SHUFFLE(high, high, 0, 0, 1, 1);
  s[3] = SHUFFLE(high, high, 2, 2, 3, 3);
#endif
}
// Two values of each of eight rows.
INL void interleaved_floats(const u8 *w, const vf s[INTERLEAVED_REGS], vf v[INTERLEAVED_REGS]) {
#if W == 4
  const i32x16 all = CONVERT(LOAD(i8x16, w), i32x16);
  const i32x8 low = LOW8(all), high = HIGH8(all);
  v[0] = CONVERT(SHUFFLE(low, low, 0, 1, 2, 3), vf) * s[0];
  v[1] = CONVERT(SHUFFLE(low, low, 4, 5, 6, 7), vf) * s[1];
  v[2] = CONVERT(SHUFFLE(high, high, 0, 1, 2, 3), vf) * s[2];
  v[3] = CONVERT(SHUFFLE(high, high, 4, 5, 6, 7), vf) * s[3];
#else
  typedef i8 narrow VEC(W);
  UNROLL for (int r = 0; r < INTERLEAVED_REGS; r++) v[r] = CONVERT(LOAD(narrow, w + r * W), vf) * s[r];
#endif
}
// For each of W rows, the total of its two sums.
INL vf both_sums(vf a, vf b) {
#if W == 16
  return SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30) +
         SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#elif W == 8
  return SHUFFLE(a, b, 0, 2, 4, 6, 8, 10, 12, 14) + SHUFFLE(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
  return SHUFFLE(a, b, 0, 2, 4, 6) + SHUFFLE(a, b, 1, 3, 5, 7);
#endif
}

// `groups` times eight rows, `bytes` apart, times one token: y[row], padded to W
INL void alone_tile(int groups, const u8 *w, i64 bytes, int n, const f32 *x, f32 *y) {
  vf acc[ALONE_GROUPS * INTERLEAVED_REGS + 1];
  UNROLL for (int r = 0; r < groups * INTERLEAVED_REGS + 1; r++) acc[r] = (vf){};
  for (const f32 *end = x + n; x < end;) {
    vf s[ALONE_GROUPS][INTERLEAVED_REGS];
    UNROLL for (int g = 0; g < groups; g++) interleaved_scales(w + g * bytes, s[g]);
    w += 2 * INTERLEAVED_ROWS;
    _Pragma("clang loop unroll(disable)") for (const f32 *block = x + 32; x < block; x += 2, w += 16) {
      const vf pair = splat_pair(x);
      UNROLL for (int g = 0; g < groups; g++) {
        vf v[INTERLEAVED_REGS];
        interleaved_floats(w + g * bytes, s[g], v);
        UNROLL for (int r = 0; r < INTERLEAVED_REGS; r++)
          acc[g * INTERLEAVED_REGS + r] = FMA(v[r], pair, acc[g * INTERLEAVED_REGS + r]);
      }
    }
  }
  UNROLL for (int r = 0; r < groups * INTERLEAVED_REGS; r += 2) STORE(y + r * W / 2, both_sums(acc[r], acc[r + 1]));
}
NOINL void alone_some(const u8 *w, i64 bytes, int n, const f32 *x, f32 *y) { alone_tile(ALONE_GROUPS, w, bytes, n, x, y); }
NOINL void alone_one(const u8 *w, i64 bytes, int n, const f32 *x, f32 *y) { alone_tile(1, w, bytes, n, x, y); }

// PAIRS_ROWS rows, or the first eight of them. to: (PAIRS_ROWS / W, n / 2, 2, W)
NOINL void fill_pairs(f32 *to, const u8 *w, i64 bytes, int rows, int n) {
  for (int g = 0; g < PAIRS_ROWS / 8; g++, w += rows > 8 ? bytes : 0) {
    const u8 *from = w;
    for (i64 block = 0; block < n / 2; block += 16) {
      vf s[INTERLEAVED_REGS], v[INTERLEAVED_REGS];
      interleaved_scales(from, s);
      from += 2 * INTERLEAVED_ROWS;
      for (i64 pair = block; pair < block + 16; pair++, from += 16) {
        interleaved_floats(from, s, v);
        UNROLL for (int r = 0; r < INTERLEAVED_REGS; r++) {
          const int at = g * INTERLEAVED_REGS + r;
          STORE(to + ((at / 2 * (i64)(n / 2) + pair) * 2 + at % 2) * W, v[r]);
        }
      }
    }
  }
}
// `count` tokens times W rows of a panel: y[t · PAIRS_STRIDE + row]
INL void pairs_tile(int count, const f32 *panel, int n, const f32 *const *x, f32 *y) {
  vf acc[FLOAT_TILE][2];
  const f32 *from[FLOAT_TILE];
  UNROLL for (int t = 0; t < count; t++) {
    from[t] = x[t];
    acc[t][0] = acc[t][1] = (vf){};
  }
  _Pragma("clang loop unroll(disable)") for (i64 k = 0; k < n; k += 2, panel += 2 * W) {
    const vf a = LOAD(vf, panel), b = LOAD(vf, panel + W);
    UNROLL for (int t = 0; t < count; t++) {
      const vf pair = splat_pair(from[t] + k);
      acc[t][0] = FMA(a, pair, acc[t][0]);
      acc[t][1] = FMA(b, pair, acc[t][1]);
    }
  }
  UNROLL for (int t = 0; t < count; t++) STORE(y + t * PAIRS_STRIDE, both_sums(acc[t][0], acc[t][1]));
}
NOINL void pairs_whole(const f32 *panel, int n, const f32 *const *x, f32 *y) { pairs_tile(FLOAT_TILE, panel, n, x, y); }
NOINL void pairs_half(const f32 *panel, int n, const f32 *const *x, f32 *y) { pairs_tile(FLOAT_TILE / 2, panel, n, x, y); }

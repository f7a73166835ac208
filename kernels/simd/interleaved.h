// interleaved: products with q8_0 rows interleaved word by word in groups of eight: in WebAssembly, where weights are
// copied anyway, and for small models everywhere.
//
// Each group of eight rows has the first 16 bits of each row, then the second, and so on: eight scales of a block, then
// 16 times two values of every row. A register holds two values of four rows, so 16-bit products need no sum across it.
// Every row sums its blocks in sequence, for any number of tokens. The interleaver guarantees finite scales.
#pragma once
#include "unit.h"

// Added to the type's number: for products of integers, or of floats (interleaved_floats.h).
enum { INTERLEAVED = 256, INTERLEAVED_FLOATS = 512 };
#define INTERLEAVED_ROWS 8

// Row `row` of a matrix, as consecutive blocks.
INL void interleaved_row(const u8 *w, i64 row, i64 bytes, u8 *to) {
  const u8 *from = w + row / INTERLEAVED_ROWS * INTERLEAVED_ROWS * bytes + row % INTERLEAVED_ROWS * 2;
  for (i64 i = 0; i < bytes; i += 2) STORE(to + i, LOAD(u16, from + i * INTERLEAVED_ROWS));
}

#if defined(__wasm__)
#define INTERLEAVED_TOKENS 3

// As half4, but infinities become numbers.
INL f32x4 finite4(u16x4 h) {
  typedef i16 i16x4 VEC(8);
  return (f32x4)((CONVERT((i16x4)h, i32x4) << 13) & (i32)0x8fffe000) * 5.192296858534828e+33f; // 2^112
}

// Two loops by hand: with `step` pairs of values at once, sums fit into registers and addresses into loads. y[t ·
// stride + row]
INL void interleaved_tile(int tokens, int step, const u8 *w, int n, const Packed *x, f32 *y, i64 stride) {
  const i16 *q[INTERLEAVED_TOKENS];
  vf low[INTERLEAVED_TOKENS], high[INTERLEAVED_TOKENS];
  UNROLL for (int t = 0; t < tokens; t++) {
    q[t] = x[t].wide;
    low[t] = high[t] = (vf){};
  }
  for (i64 b = 0; b < n / 32; b++) {
    vi a[INTERLEAVED_TOKENS], c[INTERLEAVED_TOKENS];
    UNROLL for (int t = 0; t < tokens; t++) a[t] = c[t] = (vi){};
    const vf s = finite4(LOAD(u16x4, w)), r = finite4(LOAD(u16x4, w + 8));
    w += 2 * INTERLEAVED_ROWS;
    _Pragma("clang loop unroll(disable)") for (const u8 *end = w + 32 * INTERLEAVED_ROWS; w < end;) {
      UNROLL for (int k = 0; k < step; k++) {
        const v128_t v = wasm_i16x8_load8x8(w + 16 * k), u = wasm_i16x8_load8x8(w + 16 * k + 8);
        UNROLL for (int t = 0; t < tokens; t++) {
          const v128_t pair = wasm_v128_load32_splat(q[t] + 2 * k);
          a[t] += (vi)wasm_i32x4_dot_i16x8(v, pair);
          c[t] += (vi)wasm_i32x4_dot_i16x8(u, pair);
        }
      }
      w += 16 * step;
      UNROLL for (int t = 0; t < tokens; t++) q[t] += 2 * step;
    }
    UNROLL for (int t = 0; t < tokens; t++) {
      const vf d = (vf){} + x[t].d[b];
      low[t] = FMA(CONVERT(a[t], vf), s * d, low[t]);
      high[t] = FMA(CONVERT(c[t], vf), r * d, high[t]);
    }
  }
  UNROLL for (int t = 0; t < tokens; t++) {
    STORE(y + t * stride, low[t]);
    STORE(y + t * stride + 4, high[t]);
  }
}
#define DEFINE(tokens, step) \
  NOINL void interleaved_##tokens(const u8 *w, int n, const Packed *x, f32 *y, i64 stride) { \
    interleaved_tile(tokens, step, w, n, x, y, stride); \
  }
DEFINE(1, 4)
DEFINE(2, 2)
DEFINE(3, 1)
#undef DEFINE

// Eight rows times `tokens`, at most INTERLEAVED_TOKENS.
INL void multiply_interleaved(int tokens, const u8 *w, int n, const Packed *x, f32 *y, i64 stride) {
  (tokens == 1 ? interleaved_1 : tokens == 2 ? interleaved_2 : interleaved_3)(w, n, x, y, stride);
}
#endif

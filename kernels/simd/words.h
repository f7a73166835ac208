// words: rows as 16-bit integers, of whose products a register holds twice as many as of floats.
//
// A block of UNIT values of a row has its own scale: the smallest one with which each integer is at most WORD_LARGEST
// and the length of the block as a vector at most WORD_LENGTH. Then by Cauchy and Schwarz the products of two blocks
// sum exactly in 32 bits, in any order, and rounding leaves at most 256/12/46300² = 1e-8 of a block's squares. Half
// floats leave 3e-8.
#pragma once
#include "unit.h"

#define WORD_LARGEST 32767
#define WORD_LENGTH 46300 // rounded to integers, at most 8 more: (46300 + 8)² < 2^31
#define WORD_SCALED_MIN 1e-33f // for smaller values, the inverse of the scale would be infinite

#define ROUNDING 12582912.0f
// Rounds a · x to words: after adding 1.5 · 2^23, the lowest bits are the integer.
INL void store_words(i16 *to, vf a, vf x) {
  typedef i16 narrow VEC(2 * W);
  STORE(to, CONVERT((vi)FMA(a, x, splat(ROUNDING)), narrow));
}

#define WORD_STEP (4 * W)
// Converts UNIT values to words; `to` may be their own place. Returns their scale: NaN if one is NaN or infinite, 0 if
// they are too small.
NOINL f32 unit_words(i16 *to, const f32 *x) {
  vi most[4] = {};
  for (int i = 0; i < UNIT; i += WORD_STEP) UNROLL for (int k = 0; k < 4; k++)
    most[k] = __builtin_elementwise_max(most[k], LOAD(vi, x + i + k * W) & 0x7fffffff);
  UNROLL for (int k = 1; k < 4; k++) most[0] = __builtin_elementwise_max(most[0], most[k]);
  const i32 bits = largest_int(most[0]); // largest for NaN
  const f32 amax = LOAD(f32, &bits), by = amax > WORD_SCALED_MIN ? 1 / amax : 0;
  vf squares[4] = {};
  for (int i = 0; i < UNIT; i += WORD_STEP) UNROLL for (int k = 0; k < 4; k++) {
    const vf v = LOAD(vf, x + i + k * W) * by;
    squares[k] = FMA(v, v, squares[k]);
  }
  const f32 length = WORD_LENGTH * inverse_root(sum((squares[0] + squares[1]) + (squares[2] + squares[3])));
  const f32 largest = length < WORD_LARGEST ? length : WORD_LARGEST;
  const vf inverse = splat(largest * by);
  for (int i = 0; i < UNIT; i += WORD_STEP) UNROLL for (int k = 0; k < 4; k++)
    store_words(to + i + k * W, inverse, LOAD(vf, x + i + k * W));
  if (bits >= 0x7f800000) return __builtin_nanf("");
  return by > 0 ? amax / largest : 0;
}

// --- activations of one token: i16 words[n], f32 scales[n / UNIT]; n padded to whole units ---

#define WORD_BYTES(n) (FILLED(n) * 2 + FILLED(n) / UNIT * 4)

NOINL void row_words(u8 *to, const f32 *x, int n) {
  f32 *scales = (f32 *)(to + FILLED(n) * 2);
  f32 rest[UNIT];
  for (int i = 0; i < n; i += UNIT) {
    const f32 *from = x + i;
    if (i + UNIT > n) {
      for (int k = 0; k < UNIT; k += W) STORE(rest + k, k < n - i ? load_some(from + k, n - i - k) : (vf){});
      from = rest;
    }
    scales[i / UNIT] = unit_words((i16 *)to + i, from);
  }
}

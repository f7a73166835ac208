// four-bits: a cache of 4 bits a value, with a half float for each 32 values of a position.
//
// Heads are rotated before by a Hadamard matrix (`rotate`), which spreads single large values over all others. Tiles of
// 16 positions have 32 values at a time: 256 bytes, the low halves of which hold the first 16 values, then the scales.
// Each byte belongs to one position. A register has four values of each of W positions of keys, and four positions of
// each of W values, so sums of products of bytes need no sum across it.
#pragma once
#include "../functions.h"
#include "../products.h"

#define FOUR_TILE 288
#define FOUR_SCALES 256
// A value is (2 · n − 15) · scale, n = 0 … 15.
#define FOUR_LESS 15
#define HALF_MAX 65504.0f

// Times a Hadamard matrix of each `block` values, divided by √block: its own inverse. n: multiple of block, a power of
// two from 4 on
NOINL void rotate(f32 *x, int n, int block) {
  const f32x4 factor = (f32x4){} + inverse_root(block);
  for (int i = 0; i < n; i += 4) {
    f32x4 v = LOAD(f32x4, x + i) * factor;
    v = SHUFFLE(v, v, 1, 0, 3, 2) + v * (f32x4){1, -1, 1, -1};
    v = SHUFFLE(v, v, 2, 3, 0, 1) + v * (f32x4){1, 1, -1, -1};
    STORE(x + i, v);
  }
  for (int half = 4; half < block; half *= 2)
    for (int first = 0; first < n; first += 2 * half)
      for (f32 *p = x + first; p < x + first + half; p += 4) {
        const f32x4 a = LOAD(f32x4, p), b = LOAD(f32x4, p + half);
        STORE(p, a + b);
        STORE(p + half, a - b);
      }
}
INL int rotated_block(int dim) { return dim & -dim; }

// The byte of the values i and i + 16 of a position, in the 32 of a tile.
INL int four_place(int is_key, int i, int at) { return is_key ? i / 4 * 64 + at * 4 + i % 4 : at / 4 * 64 + i * 4 + at % 4; }

typedef struct {
  f32 step, scale;
} FourStep;
// The step of 32 values, whose largest is 15 · most, and their scale. Three steps are tried. The integers n of one have
// the direction closest to that of x: the largest (Σ x · (2 · n − 15))² / Σ (2 · n − 15)². The scale keeps the part along
// x, Σ x² / Σ (x · (2 · n − 15)): least squares would shorten all keys and values by 0.7 %.
INL FourStep four_step(const f32 *x, f32 most) {
  FourStep best = {most > HALF_MAX ? HALF_MAX : most};
  best.scale = best.step;
  if (!(most > SCALED_MIN && most < HALF_MAX)) return best;
  f32 closest = 0;
  for (f32 step = 0.9f * most; step < 1.03f * most; step += 0.06f * most) {
    f32x4 lengths = {}, products = {}, squares = {};
    for (int i = 0; i < 32; i += 4) {
      const f32x4 v = LOAD(f32x4, x + i) * (0.5f / step);
      const i32x4 n = __builtin_elementwise_min(CONVERT(v + 8, i32x4), (i32x4){} + 15);
      const f32x4 level = CONVERT(2 * n - FOUR_LESS, f32x4);
      lengths += v * v;
      products += v * level;
      squares += level * level;
    }
    const f32 product = sum4(products), close = product * product / sum4(squares) * (step / most) * (step / most);
    if (close > closest) closest = close, best = (FourStep){step, 2 * step * sum4(lengths) / product};
  }
  return best;
}
// Writes position `at` of a tile. NaN makes its scale NaN.
NOINL void write_four(int is_key, u8 *tile, int at, const f32 *x, int n) {
  for (; n > 0; n -= 32, x += 32, tile += FOUR_TILE) {
    i32 bits = 0;
    for (int i = 0; i < 32; i++) bits = MAX(bits, LOAD(i32, x + i) & 0x7fffffff);
    const FourStep to = four_step(x, LOAD(f32, &bits) / FOUR_LESS);
    STORE(tile + FOUR_SCALES + 2 * at, to_half(to.scale));
    const f32 inverse = to.step > SCALED_MIN ? 0.5f / to.step : 0;
    for (int i = 0; i < 16; i++) {
      int both = 0;
      for (int k = 0; k < 2; k++) {
        const f32 v = x[i + 16 * k] * inverse + 8;
        both |= (v > 0 ? v < 15 ? (int)v : 15 : 0) << 4 * k;
      }
      tile[four_place(is_key, i, at)] = (u8)both;
    }
  }
}
NOINL void read_four(int is_key, const u8 *tile, int at, f32 *x, int n) {
  for (; n > 0; n -= 32, x += 32, tile += FOUR_TILE) {
    const f32 scale = half(LOAD(u16, tile + FOUR_SCALES + 2 * at));
    for (int i = 0; i < 32; i++)
      x[i] = (f32)(2 * (tile[four_place(is_key, i % 16, at)] >> i / 16 * 4 & 15) - FOUR_LESS) * scale;
  }
}
// Value d of W positions from `at` on, and W values from d on of a position: without their scales.
INL vf four_values(int is_key, const u8 *tile, int at, int d) {
  const int i = d % 16, by = (is_key ? i : at) % 4 * 8 + d % 32 / 16 * 4;
  const vi n = LOAD(vi, tile + d / 32 * FOUR_TILE + four_place(is_key, is_key ? i / 4 * 4 : i, is_key ? at : at / 4 * 4)) >> by;
  return CONVERT(2 * (n & 15) - FOUR_LESS, vf);
}
INL const u16 *four_scales(const u8 *tile, int at, int d) {
  return (const u16 *)(tile + d / 32 * FOUR_TILE + FOUR_SCALES) + at;
}

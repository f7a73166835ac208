// grids: common code of types whose blocks reference points of a grid, of four or eight values. Each matrix has its type's
// grid.
#pragma once
#include "chunks.h"
#define GRID_ZERO 64 // added to signed points, which are at most 62
#define POINT(i) LOAD(u64, grid + (i) * 8) // a point of eight values
#define POINTS(i, k) (LOAD(u32, grid + (i) * 4) | (u64)LOAD(u32, grid + (k) * 4) << 32) // two of four

// Fills a unit with points and their signs, a bit for each weight, shifted to be positive. OF(chunk): its eight values.
#define SIGNED_POINTS(u, OF, bits) \
  { \
    const u64x4 negative = chunk_bits(bits); \
    (u)->v[0] = negate_where((u8x64)CHUNKS(OF, 0), negative[0]) + GRID_ZERO; \
    (u)->v[1] = negate_where((u8x64)CHUNKS(OF, 1), negative[1]) + GRID_ZERO; \
    (u)->v[2] = negate_where((u8x64)CHUNKS(OF, 2), negative[2]) + GRID_ZERO; \
    (u)->v[3] = negate_where((u8x64)CHUNKS(OF, 3), negative[3]) + GRID_ZERO; \
  }

// Signs of eight weights for each byte's low 7 bits: the eighth makes the number of negative ones even.
INL u8x32 even_signs(u8x32 seven) {
  const u8x16 odd = {0, 128, 128, 0, 128, 0, 0, 128, 128, 0, 0, 128, 0, 128, 128, 0};
  return seven | (look_up(odd, seven & 15) ^ look_up(odd, seven >> 4));
}
// The same for the low 28 bits of eight words.
INL u8x32 even_signs28(u32x8 words) {
  return even_signs((u8x32)((words & 0x7f) | (words << 1 & 0x7f00) | (words << 2 & 0x7f0000) | (words << 3 & 0x7f000000)));
}
// Bits 0 …, n …, 2 · n … and 3 · n … of a word, n of each, become bits 8 … of four 16-bit words.
INL u16x32 ninth_bits(u64x8 words, int n) {
  const u64 mask = ((1 << n) - 1) * 0x0001000100010001;
  words |= words << (16 - n);
  words |= words << 2 * (16 - n);
  return (u16x32)(words & mask) << 8;
}

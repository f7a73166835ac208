// grids: common code of types whose blocks reference points of a grid. Each matrix has its type's grid.
#pragma once
#include "../unit.h"
#define GRID_ZERO 64 // added to signed points, which are at most 62
// 32 points' values with their signs, shifted to be positive.
INL u8x32 signed_points(u8x32 points, u32 signs) {
  u8x32 mask = bit_mask(signs);
  return (points ^ mask) - mask + GRID_ZERO;
}
// Signs of 8 weights from 7 bits: the eighth makes the number of negative ones even.
INL u32 even_signs(u32 bits) { return bits | (u32)__builtin_parity(bits) << 7; }
// Signs of 32 weights from 28 bits.
INL u32 even_signs4(u32 word) {
  return even_signs(word & 127) | even_signs(word >> 7 & 127) << 8 | even_signs(word >> 14 & 127) << 16 |
         even_signs(word >> 21 & 127) << 24;
}

// iq4_xs: 256 weights in groups of 32: f16 d, 2 bytes with the high bits of the scales, 4 with their low nibbles, then
// nibbles as in iq4_nl. w = d · (s − 32) · LEVELS[q]
#pragma once
#include "iq4_nl.h"
INL void unpack_iq4_xs(const u8 *p, const i8 *grid, Unit *u) {
  block_nibbles(p + 8, 16, u);
  const u32x8 low = LOAD(u32, p + 4) >> (u32x8){0, 4, 8, 12, 16, 20, 24, 28} & 15;
  const u32x8 high = LOAD(u16, p + 2) >> (u32x8){0, 2, 4, 6, 8, 10, 12, 14} & 3;
  u->s = in_low8(CONVERT((i32x8)(low | high << 4) - 32, f32x8) * half(LOAD(u16, p)));
  iq4_levels(u);
}

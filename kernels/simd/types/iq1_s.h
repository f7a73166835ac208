// iq1_s: 256 weights in groups of 32: f16 d, 32 bytes with indices of points of 8, then of each group 2 bytes with
// their high bits, a scale and the sign of the shift. w = d · (2·s + 1) · (point ± ⅛), kept as eighths moved up by 9
#pragma once
#include "grids.h"
// Points as eighths. `down`: all ones for points that are moved down
INL u8x64 eighths(u64x8 points, u64x8 down) { return ((u8x64)points << 3) + (10 - ((u8x64)down & 2)); }
INL void unpack_iq1_s(const u8 *p, const i8 *grid, Unit *u) {
  const u16x8 words = LOAD(u16x8, p + 34);
  const u64x8 wide = CONVERT(words, u64x8), down = -(wide >> 15);
  const u64x8 at = (u64x8)(CONVERT(LOAD(u8x32, p + 2), u16x32) | ninth_bits(wide & 0xfff, 3));
#define OF(c) POINT((u16)(at[(c) / 4] >> (c) % 4 * 16))
#define FILL(j) u->v[j] = eighths(CHUNKS(OF, j), CHUNK_GROUPS(down, j));
  EACH_REGISTER(FILL)
#undef FILL
#undef OF
  u->s = in_low8(CONVERT(CONVERT((words >> 12 & 7) * 2 + 1, i32x8), f32x8) * (half(LOAD(u16, p)) * 0.125f));
  u->m = u->s * 9;
}

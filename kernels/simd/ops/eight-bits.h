// eight-bits: a cache of 8 bits a value, with a float for each 32 values of a position.
//
// Tiles of 16 positions have their values, then their scales, (groups, 16). Bytes that are multiplied together lie side
// by side, as pairs of 16-bit words will: of keys two values of a position, (values / 2, 16, 2), of values two
// positions, (8, values, 2). Heads are rotated as for 4 bits; they have a multiple of 16 values.
#pragma once
#include "../functions.h"

#define KV_GROUP 32
INL i64 eight_bytes(i64 n) { return n + (n + KV_GROUP - 1) / KV_GROUP * 4; }
// The bytes of value d of position `at` of a tile, and of its scale. n: values of a position
INL i64 eight_place(int is_key, int n, int at, int d) {
  return is_key ? d / 2 * 32 + at * 2 + d % 2 : (at / 2 * n + d) * 2 + at % 2;
}
INL i64 eight_scale(int n, int at, int d) { return (i64)n * 16 + (d / KV_GROUP * 16 + at) * 4; }

#define SCALED_MIN 1.5e-36f // below this, a 127th has too few bits to divide by
// The scale of some values: 0 if they are too small, NaN if one is NaN.
INL f32 scale_of(const f32 *x, int n) {
  f32 most = 0;
  for (int i = 0; i < n; i++) {
    f32 v = x[i] < 0 ? -x[i] : x[i];
    if (!(v <= most)) most = v;
    if (v != v) return v;
  }
  return most < SCALED_MIN ? 0 : most / 127 + most * 0;
}
INL i8 small_of(f32 x, f32 scale) {
  f32 v = scale > 0 ? x / scale : 0;
  return (i8)(v < 0 ? v - 0.5f : v + 0.5f);
}
// Writes and reads position `at` of a tile.
NOINL void write_eight(int is_key, u8 *tile, int at, const f32 *x, int n) {
  for (int first = 0; first < n; first += KV_GROUP) {
    const int end = MIN(first + KV_GROUP, n);
    const f32 scale = scale_of(x + first, end - first);
    STORE(tile + eight_scale(n, at, first), scale);
    for (int d = first; d < end; d++) tile[eight_place(is_key, n, at, d)] = (u8)small_of(x[d], scale);
  }
}
NOINL void read_eight(int is_key, const u8 *tile, int at, f32 *x, int n) {
  for (int d = 0; d < n; d++)
    x[d] = (f32)(i8)tile[eight_place(is_key, n, at, d)] * LOAD(f32, tile + eight_scale(n, at, d));
}
typedef i16 byte_pairs VEC(2 * W);
// The first or the second byte of each pair.
INL vf eight_values(const u8 *pairs, int second) {
  const byte_pairs both = LOAD(byte_pairs, pairs);
  return CONVERT((second ? both : both << 8) >> 8, vf);
}

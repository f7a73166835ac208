// types: the list of block types. To add one: its file in types/, and a line here.
#pragma once
#include "types/iq1_m.h"
#include "types/iq1_s.h"
#include "types/iq2_s.h"
#include "types/iq2_xs.h"
#include "types/iq2_xxs.h"
#include "types/iq3_s.h"
#include "types/iq3_xxs.h"
#include "types/iq4_nl.h"
#include "types/iq4_xs.h"
#include "types/mxfp4.h"
#include "types/nvfp4.h"
#include "types/q1_0.h"
#include "types/q2_0.h"
#include "types/q2_k.h"
#include "types/q3_k.h"
#include "types/q4_0.h"
#include "types/q4_1.h"
#include "types/q4_k.h"
#include "types/q5_0.h"
#include "types/q5_1.h"
#include "types/q5_k.h"
#include "types/q6_k.h"
#include "types/q8_0.h"
#include "types/tq1_0.h"
#include "types/tq2_0.h"

// Columns: name, ggml's id, weights and bytes per block, signed bytes, groups of 16, bits per byte (0 if sums of
// products exceed 16 bits), and k if, on x86-64, every minimum is 2^k times its scale, else −1.
#define TYPES(X) \
  X(q4_0, 2, 32, 18, 0, 0, 4, 3) \
  X(q4_1, 3, 32, 20, 0, 0, 4, -1) \
  X(q5_0, 6, 32, 22, 0, 0, 5, 4) \
  X(q5_1, 7, 32, 24, 0, 0, 5, -1) \
  X(q8_0, 8, 32, 34, SIGNED_UNITS, 0, 0, 7) \
  X(q2_k, 10, 256, 84, 0, 1, 2, -1) \
  X(q3_k, 11, 256, 110, 0, 1, 3, 2) \
  X(q4_k, 12, 256, 144, 0, 0, 4, -1) \
  X(q5_k, 13, 256, 176, 0, 0, 5, -1) \
  X(q6_k, 14, 256, 210, 0, 1, 6, 5) \
  X(iq2_xxs, 16, 256, 66, 0, 0, 0, -1) \
  X(iq2_xs, 17, 256, 74, 0, 1, 0, -1) \
  X(iq3_xxs, 18, 256, 98, 0, 0, 0, -1) \
  X(iq1_s, 19, 256, 50, 0, 0, 0, -1) \
  X(iq4_nl, 20, 32, 18, SIGNED_UNITS, 0, 0, 7) \
  X(iq3_s, 21, 256, 110, 0, 0, 0, -1) \
  X(iq2_s, 22, 256, 82, 0, 1, 0, -1) \
  X(iq4_xs, 23, 256, 136, SIGNED_UNITS, 0, 0, 7) \
  X(iq1_m, 29, 256, 56, 0, 1, 0, -1) \
  X(tq1_0, 34, 256, 54, 0, 1, 2, 0) \
  X(tq2_0, 35, 256, 66, 0, 1, 2, 0) \
  X(mxfp4, 39, 32, 17, 0, 0, 0, -1) \
  X(nvfp4, 40, 64, 36, 0, 1, 0, -1) \
  X(q1_0, 41, 128, 18, 0, 0, 2, 0) \
  X(q2_0, 42, 64, 18, 0, 0, 2, 0)

enum { F32 = 0, F16 = 1, BF16 = 30 };
#define ENUM(name, number, len, bytes, sgn, by16, bits, shift) TYPE_##name = number,
enum { TYPES(ENUM) };
#undef ENUM
#define ENUM(name, number, len, bytes, sgn, by16, bits, shift) SHIFT_##name = shift,
enum { TYPES(ENUM) };
#undef ENUM

typedef struct {
  int len, bytes, is_signed, by16, bits, shift;
} TypeInfo;
NOINL TypeInfo type_info(int type) {
  switch (type) {
#define CASE(name, number, len, bytes, sgn, by16, bits, shift) \
  case number: return (TypeInfo){len, bytes, sgn, by16, bits, shift};
    TYPES(CASE)
#undef CASE
    default: return (TypeInfo){1, type == F32 ? 4 : 2};
  }
}
INL int is_narrow(TypeInfo t) { return t.bits > 0 && t.bits <= 4; }
INL int is_float(int type) { return type == F32 || type == F16 || type == BF16; }
#define UNIT_BYTES_MAX 272 // for a type whose blocks are shorter than a unit

#define DEFINE(name, number, len, bytes, sgn, by16, bits, shift) \
  NOINL void unpack_units_##name(const u8 *p, i64 count, const i8 *grid, Unit *u) { \
    for (i64 b = 0; b < count; b++) unpack_##name(p + b * (UNIT / len) * bytes, grid, u + b); \
  }
TYPES(DEFINE)
#undef DEFINE

NOINL void unpack_units(int type, const u8 *p, i64 count, const i8 *grid, Unit *u) {
  switch (type) {
#define CASE(name, number, len, bytes, sgn, by16, bits, shift) \
  case number: unpack_units_##name(p, count, grid, u); break;
    TYPES(CASE)
#undef CASE
  }
}
// The partial unit at p of a row with `left` remaining weights, padded with zeros.
NOINL void unpack_last(int type, const u8 *p, i64 left, const i8 *grid, Unit *u) {
  TypeInfo t = type_info(type);
  u8 last[UNIT_BYTES_MAX];
  const i64 bytes = left / t.len * t.bytes; // 17 at least
  UNROLL for (int i = 0; i < UNIT_BYTES_MAX; i += 16) STORE(last + i, (u8x16){});
  for (i64 i = 0; i + 16 <= bytes; i += 16) STORE(last + i, LOAD(u8x16, p + i));
  STORE(last + bytes - 16, LOAD(u8x16, p + bytes - 16));
  unpack_units(type, last, 1, grid, u);
}
// Unit `b` of a row of n weights.
INL void unpack_unit(int type, const u8 *row, i64 b, int n, const i8 *grid, Unit *u) {
  TypeInfo t = type_info(type);
  const u8 *p = row + b * (UNIT / t.len) * t.bytes;
  if (b * UNIT + UNIT > n) unpack_last(type, p, n - b * UNIT, grid, u);
  else unpack_units(type, p, 1, grid, u);
}
// All units of a row.
INL void unpack_row(int type, const u8 *row, int n, const i8 *grid, Unit *u) {
  TypeInfo t = type_info(type);
  const i64 whole = n / UNIT;
  unpack_units(type, row, whole, grid, u);
  if (n % UNIT) unpack_last(type, row + whole * (UNIT / t.len) * t.bytes, n % UNIT, grid, u + whole);
}

// A row of n weights as floats. to: (n)
NOINL void unpack_floats(int type, const u8 *row, int n, const i8 *grid, f32 *to) {
  if (type == F32) for (int i = 0; i < n; i++) to[i] = LOAD(f32, row + 4 * (i64)i);
  else if (type == F16) {
    int i = 0;
    for (; i + W <= n; i += W) STORE(to + i, halves((const u16 *)row + i));
    for (; i < n; i++) to[i] = half(LOAD(u16, row + 2 * (i64)i));
  } else if (type == BF16) {
    for (int i = 0; i < n; i++) {
      u32 bits = (u32)LOAD(u16, row + 2 * (i64)i) << 16;
      to[i] = LOAD(f32, &bits);
    }
  } else {
    TypeInfo t = type_info(type);
    for (i64 b = 0; b * UNIT < n; b++) {
      Unit u;
      unpack_unit(type, row, b, n, grid, &u);
      const u8 *v = (const u8 *)u.v;
      int biased = !SIGNED_UNITS || !t.is_signed;
      for (int i = 0; i < MIN(UNIT, n - b * UNIT); i++) {
        int group = i / (t.by16 ? 16 : 32);
        f32 value = biased ? (f32)v[UNIT_AT(i)] : (f32)(i8)v[UNIT_AT(i)];
        to[b * UNIT + i] = FMA(value, u.s[group], -u.m[group]);
      }
    }
  }
}

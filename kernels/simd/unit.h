// unit: the common unpacked form of block types, and activations packed to 8 bits.
//
// A unit is 256 weights of a row: w = s · u − m, with u a byte (0 … 127, or any int8 of a signed type; with AVX-512 0 …
// 255), and s and m shared by groups of 32 (8 of them, in the low half) or 16. A row that does not fill its last unit
// is padded with blocks of zeros, and so are activations: they add nothing.
#pragma once
#include "products.h"

#define UNIT 256
typedef struct {
  u8x64 v[4];
  f32x16 s;
  f32x16 m;
} Unit;

// The position of value i in a unit, and in packed activations. With AVX-512 (4, 8 groups of 32, 8 values): a register
// has eight values of each group, so products need no sum across it.
#if defined(__AVX512VNNI__)
#define UNIT_AT(i) ((i) / 8 % 4 * 64 + (i) / 32 * 8 + (i) % 8)
#else
#define UNIT_AT(i) (i)
#endif
typedef u64 u64x8 VEC(64);
// Reorders consecutive values to that layout.
INL void order_unit(Unit *u) {
#if defined(__AVX512VNNI__)
  u64x8 half[4];
  UNROLL for (int i = 0; i < 4; i++) {
    u64x8 a = (u64x8)u->v[i / 2 * 2], b = (u64x8)u->v[i / 2 * 2 + 1];
    half[i] = i % 2 ? SHUFFLE(a, b, 2, 6, 10, 14, 3, 7, 11, 15) : SHUFFLE(a, b, 0, 4, 8, 12, 1, 5, 9, 13);
  }
  UNROLL for (int i = 0; i < 2; i++) {
    u->v[2 * i] = (u8x64)SHUFFLE(half[i], half[i + 2], 0, 1, 2, 3, 8, 9, 10, 11);
    u->v[2 * i + 1] = (u8x64)SHUFFLE(half[i], half[i + 2], 4, 5, 6, 7, 12, 13, 14, 15);
  }
#endif
}

INL f32x16 in_low8(f32x8 v) { return JOIN8(v, (f32x8){}); }
// Half floats of eight blocks, `step` bytes apart.
INL f32x8 halves8(const u8 *p, i64 step) {
  u16x4 a = {LOAD(u16, p), LOAD(u16, p + step), LOAD(u16, p + 2 * step), LOAD(u16, p + 3 * step)};
  p += 4 * step;
  u16x4 b = {LOAD(u16, p), LOAD(u16, p + step), LOAD(u16, p + 2 * step), LOAD(u16, p + 3 * step)};
  f32x4 low = half4(a), high = half4(b);
  return SHUFFLE(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

// 16 bytes to 32 values: low nibbles, then high ones.
INL u8x32 nibbles(const u8 *p) {
  u8x16 v = LOAD(u8x16, p);
  return JOIN16(v & 15, v >> 4);
}
// The same of two blocks.
INL u8x64 nibbles2(const u8 *p, i64 step) {
#if defined(__AVX512VNNI__)
  typedef u64 u64x8 VEC(64);
  u8x32 both = JOIN16(LOAD(u8x16, p), LOAD(u8x16, p + step));
  u8x64 v = SHUFFLE(both, both, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
                    12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 16, 17, 18, 19, 20, 21,
                    22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
  return (u8x64)((u64x8)v >> (u64x8){0, 0, 4, 4, 0, 0, 4, 4}) & 15;
#else
  u8x32 a = nibbles(p), b = nibbles(p + step);
  return JOIN32(a, b);
#endif
}
// Scales and minimums of Q4_K and Q5_K: 8 of 6 bits each in 12 bytes.
INL void scales_k4(const u8 *p, f32x8 *scales, f32x8 *mins) {
  u32 a = LOAD(u32, p), b = LOAD(u32, p + 4), c = LOAD(u32, p + 8);
  u32 s[2] = {a & 0x3f3f3f3f, (c & 0x0f0f0f0f) | ((a >> 6 & 0x03030303) << 4)};
  u32 m[2] = {b & 0x3f3f3f3f, (c >> 4 & 0x0f0f0f0f) | ((b >> 6 & 0x03030303) << 4)};
  *scales = CONVERT(LOAD(u8x8, s), f32x8);
  *mins = CONVERT(LOAD(u8x8, m), f32x8);
}
#if defined(__AVX512VNNI__)
// The same for two blocks at once, times d and dmin: words 1, 2 and 3 are those bytes, d and dmin come before them.
INL void scales_pair_k4(const u8 *p, const u8 *next, f32x16 times, f32x16 *s, f32x16 *m) {
  typedef _Float16 half16_t VEC(32);
  const u8x32 head = JOIN16(LOAD(u8x16, p), LOAD(u8x16, next));
  const u16x16 halves = (u16x16)head;
  const u32x8 words = (u32x8)head, masks = {0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f,
                                            0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f};
  const u32x8 low = SHUFFLE(words, words, 1, 3, 2, 3, 5, 7, 6, 7) >> (u32x8){0, 0, 0, 4, 0, 0, 0, 4} & masks;
  const u32x8 high = SHUFFLE(words, (u32x8){}, 8, 1, 8, 2, 8, 5, 8, 6) >> 2 & 0x30303030;
  const u32x8 all = low | high; // per block eight scales, then eight minimums
  const f32x16 scales = CONVERT((u8x16)SHUFFLE(all, all, 0, 1, 4, 5), f32x16);
  const f32x16 mins = CONVERT((u8x16)SHUFFLE(all, all, 2, 3, 6, 7), f32x16);
  *s = scales * times * CONVERT((half16_t)SHUFFLE(halves, halves, 0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8), f32x16);
  *m = mins * CONVERT((half16_t)SHUFFLE(halves, halves, 1, 1, 1, 1, 1, 1, 1, 1, 9, 9, 9, 9, 9, 9, 9, 9), f32x16);
}
#endif
// Nibbles of Q4_K and Q5_K: 32 bytes hold 32 values in their low halves and 32 in their high ones.
INL void nibbles_k4(const u8 *p, Unit *u) {
#if defined(__AVX512VNNI__)
  const u64x8 a = LOAD(u64x8, p), b = LOAD(u64x8, p + 64), by = {0, 4, 0, 4, 0, 4, 0, 4};
  u->v[0] = (u8x64)(SHUFFLE(a, b, 0, 0, 4, 4, 8, 8, 12, 12) >> by) & 15;
  u->v[1] = (u8x64)(SHUFFLE(a, b, 1, 1, 5, 5, 9, 9, 13, 13) >> by) & 15;
  u->v[2] = (u8x64)(SHUFFLE(a, b, 2, 2, 6, 6, 10, 10, 14, 14) >> by) & 15;
  u->v[3] = (u8x64)(SHUFFLE(a, b, 3, 3, 7, 7, 11, 11, 15, 15) >> by) & 15;
#else
  UNROLL for (int j = 0; j < 4; j++) {
    u8x32 v = LOAD(u8x32, p + j * 32);
    u8x32 low = v & 15, high = v >> 4;
    u->v[j] = JOIN32(low, high);
  }
#endif
}
// The last step of a signed type: with AVX-512 its values are shifted to 0 … 255.
INL void finish_signed(Unit *u) {
#if defined(__AVX512VNNI__)
  UNROLL for (int j = 0; j < 4; j++) u->v[j] ^= 0x80;
  u->m = u->s * 128;
#else
  u->m = (f32x16){};
#endif
}
#if defined(__AVX512VNNI__)
#define SIGNED_UNITS 0
#else
#define SIGNED_UNITS 1
#endif
#if defined(__AVX2__)
#define SHIFTED 1 // sums of a panel may begin with the part that minimums subtract
#else
#define SHIFTED 0
#endif

// --- activations of one token: q[n] int8, each unit in its order, then f32 d[n/32], f32 d·Σq of 32, f32 d·Σq of 16, on
// x86-64 −Σq of 32 and of 16, and in WebAssembly q[n] once more, as int16 in order; n padded to units ---

#if defined(__wasm__)
#define WIDE 1
#else
#define WIDE 0
#endif

#define FILLED(n) (((i64)(n) + UNIT - 1) / UNIT * UNIT)
#define PACKED_BYTES(n) (FILLED(n) + FILLED(n) / 32 * 4 * (SHIFTED ? 7 : 4) + WIDE * 2 * FILLED(n))
typedef struct {
  const i8 *q;
  const f32 *d, *sum32, *sum16;
  const i32 *less32, *less16; // if SHIFTED; if NARROW, two 16-bit sums: of values 0, 1 and of 2, 3 of each four
  const i16 *wide; // if WIDE
} Packed;

INL Packed packed_row(const u8 *base, int n) {
  i64 filled = FILLED(n);
  const f32 *d = (const f32 *)(base + filled);
  const i32 *less = (const i32 *)(d + filled / 8);
  return (Packed){(const i8 *)base, d, d + filled / 32, d + filled / 16, less, less + filled / 32, (const i16 *)less};
}

// −Σ of 16 values, and the total of all, as a word of less16.
INL i32 less_of(const i8 *values, i32 total) {
  if (!NARROW) return -total;
  const i16x16 v = CONVERT(LOAD(i8x16, values), i16x16);
  const i16x8 a = SHUFFLE(v, v, 0, 1, 2, 3, 4, 5, 6, 7) + SHUFFLE(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  const i32 low = a[0] + a[1] + a[4] + a[5];
  return (-low & 0xffff) | (u32)(low - total) << 16;
}

// (8 rows, 8 words) to (8 words, 8 rows)
INL void transpose8(i32x8 v[8]) {
  i32x8 a[8], b[8];
  UNROLL for (int i = 0; i < 4; i++) {
    a[2 * i] = SHUFFLE(v[2 * i], v[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    a[2 * i + 1] = SHUFFLE(v[2 * i], v[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  UNROLL for (int h = 0; h < 2; h++) UNROLL for (int i = 0; i < 2; i++) {
    b[4 * h + 2 * i] = SHUFFLE(a[4 * h + i], a[4 * h + 2 + i], 0, 1, 8, 9, 4, 5, 12, 13);
    b[4 * h + 2 * i + 1] = SHUFFLE(a[4 * h + i], a[4 * h + 2 + i], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  UNROLL for (int i = 0; i < 4; i++) {
    v[i] = SHUFFLE(b[i], b[4 + i], 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = SHUFFLE(b[i], b[4 + i], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// A NaN or infinite value makes the whole block NaN or infinite.
NOINL void pack_row(u8 *base, const f32 *x, int n) {
  Packed to = packed_row(base, n);
  i8 *q = (i8 *)to.q;
  f32 *d = (f32 *)to.d, *sum32 = (f32 *)to.sum32, *sum16 = (f32 *)to.sum16;
  i32 *less32 = (i32 *)to.less32, *less16 = (i32 *)to.less16;
  for (i64 b = 0; b < FILLED(n) / 32; b++) {
    f32 block[32] __attribute__((aligned(64))) = {0};
    const f32 *p = x + b * 32;
    if (b * 32 + 32 > n) {
      for (i64 i = b * 32; i < n; i++) block[i - b * 32] = x[i];
      p = block;
    }
    vi most = {};
    UNROLL for (int i = 0; i < 32; i += W) most = __builtin_elementwise_max(most, LOAD(vi, p + i) & 0x7fffffff);
    i32 bits = largest_int(most); // largest for NaN
    f32 amax = LOAD(f32, &bits), scale = amax / 127 + amax * 0, inverse = amax > 0 ? 127 / amax : 0;
    if (bits >= 0x7f800000) { // only the scale shows it: the values may be zeros
      for (int i = 0; i < 32; i++) block[i] = 0;
      p = block;
    }
    i32 sums[2];
    i8 values[32];
    UNROLL for (int half = 0; half < 2; half++) {
      vi all = {};
      UNROLL for (int i = half * 16; i < half * 16 + 16; i += W) {
        vi r = CONVERT(__builtin_elementwise_roundeven(LOAD(vf, p + i) * inverse), vi);
        typedef i8 narrow VEC(W);
        STORE(values + i, CONVERT(r, narrow));
        typedef i16 words VEC(2 * W);
        if (WIDE) STORE((i16 *)to.wide + b * 32 + i, CONVERT(r, words));
        all += r;
      }
      sums[half] = sum_int(all);
    }
    for (int i = 0; i < 32; i += 8) STORE(q + b / 8 * UNIT + UNIT_AT(b % 8 * 32 + i), LOAD(u64, values + i));
    d[b] = scale;
    sum16[2 * b] = scale * sums[0];
    sum16[2 * b + 1] = scale * sums[1];
    sum32[b] = scale * (sums[0] + sums[1]);
    if (!SHIFTED) continue;
    typedef i16 pair VEC(4);
    for (int half = 0; half < 2; half++) less16[2 * b + half] = less_of(values + half * 16, sums[half]);
    if (NARROW) STORE(less32 + b, LOAD(pair, less16 + 2 * b) + LOAD(pair, less16 + 2 * b + 1));
    else less32[b] = less16[2 * b] + less16[2 * b + 1];
  }
}

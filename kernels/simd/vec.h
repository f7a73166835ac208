// vec: lanes, loads and sums for every instruction set. With products.h the only file with intrinsics.
//
// Everything else uses clang's vector types, which lower well on all of them. Fused sums are written as `fma`, and the
// compiler contracts nothing, so a sum has the same bits in every variant of a loop.
#pragma once
#if defined(__wasm__)
#include <wasm_simd128.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;

#define VEC(bytes) __attribute__((vector_size(bytes)))
#define INL static inline __attribute__((always_inline))
// On Windows, functions that only this library calls use other systems' calling convention: Windows' own would make
// each of them save ten vector registers.
#if defined(_WIN32) && defined(__x86_64__)
#define NOINL static __attribute__((noinline, sysv_abi))
#else
#define NOINL static __attribute__((noinline))
#endif
#define UNROLL _Pragma("clang loop unroll(full)")
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

// Conversions of half floats and fused sums are instructions of every level but these.
#if defined(__wasm__) || (defined(__x86_64__) && !defined(__AVX2__))
#define PLAIN_FLOATS 1
#else
#define PLAIN_FLOATS 0
#endif

#define AHEAD 8192 // prefetch distance in bytes: two pages

// W lanes in a register, PANEL_REGS registers of weight rows in a panel, TILE tokens multiplied with it at once.
#if defined(__AVX512VNNI__)
#define W 16
#define PANEL_REGS 2
#define TILE 6
#elif defined(__AVX2__)
#define W 8
#define PANEL_REGS 2
#define TILE 4
#elif PLAIN_FLOATS
#define W 4
#define PANEL_REGS 2
#define TILE 3
#else
#define W 4
#define PANEL_REGS 2
#define TILE 4
#endif
#define PANEL_ROWS (W * PANEL_REGS)

typedef f32 vf VEC(4 * W);
typedef i32 vi VEC(4 * W);
typedef u8 vu VEC(4 * W);
typedef i8 vs VEC(4 * W);
typedef i16 vh VEC(4 * W);
typedef u8 u8x8 VEC(8);
typedef i8 i8x8 VEC(8);
typedef u16 u16x4 VEC(8);
typedef u8 u8x16 VEC(16);
typedef i8 i8x16 VEC(16);
typedef u16 u16x8 VEC(16);
typedef i16 i16x8 VEC(16);
typedef u32 u32x4 VEC(16);
typedef i32 i32x4 VEC(16);
typedef f32 f32x4 VEC(16);
typedef u8 u8x32 VEC(32);
typedef i8 i8x32 VEC(32);
typedef u16 u16x16 VEC(32);
typedef i16 i16x16 VEC(32);
typedef i32 i32x8 VEC(32);
typedef u32 u32x8 VEC(32);
typedef f32 f32x8 VEC(32);
typedef u8 u8x64 VEC(64);
typedef i8 i8x64 VEC(64);
typedef i32 i32x16 VEC(64);
typedef f32 f32x16 VEC(64);

#define LOAD(T, p) ({ T v_; __builtin_memcpy(&v_, (p), sizeof v_); v_; })
#define STORE(p, v) ({ __typeof__(v) v_ = (v); __builtin_memcpy((p), &v_, sizeof v_); })
#define CONVERT(v, T) __builtin_convertvector(v, T)
#define SHUFFLE __builtin_shufflevector
#define JOIN32(a, b) \
  SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, \
          29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, \
          57, 58, 59, 60, 61, 62, 63)
#define JOIN16(a, b) \
  SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, \
          29, 30, 31)
#define JOIN8(a, b) SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define LOW8(v) SHUFFLE(v, v, 0, 1, 2, 3, 4, 5, 6, 7)
#define HIGH8(v) SHUFFLE(v, v, 8, 9, 10, 11, 12, 13, 14, 15)

// a · b + c: one rounding, but two in WebAssembly, which has no such instruction.
#if PLAIN_FLOATS
#define FMA(a, b, c) ((a) * (b) + (c))
#else
#define FMA(a, b, c) __builtin_elementwise_fma(a, b, c)
#endif

#if defined(__AVX512VNNI__)
typedef u64 u64x8 VEC(64);
INL u64x8 rotate_left(u64x8 v, u64x8 by) { return (u64x8)_mm512_rolv_epi64((__m512i)v, (__m512i)by); }
#endif

// v, which clang 19 otherwise takes apart into general registers: it does so with bytes shifted and masked for a product.
INL u8x32 in_lanes(u8x32 v) {
#if defined(__AVX2__)
  __asm__("" : "+x"(v));
#endif
  return v;
}

// Replaces each byte of v, 0 … 15, by that entry of the table.
INL u8x32 look_up(u8x16 table, u8x32 v) {
#if defined(__AVX2__)
  u8x32 both = JOIN16(table, table);
  return (u8x32)_mm256_shuffle_epi8((__m256i)both, (__m256i)v);
#elif defined(__x86_64__)
  union { u8x32 v; __m128i h[2]; } a = {v};
  for (int i = 0; i < 2; i++) a.h[i] = _mm_shuffle_epi8((__m128i)table, a.h[i]);
  return a.v;
#elif defined(__wasm__)
  union { u8x32 v; v128_t h[2]; } a = {v};
  for (int i = 0; i < 2; i++) a.h[i] = wasm_i8x16_swizzle((v128_t)table, a.h[i]);
  return a.v;
#else
  union { u8x32 v; uint8x16_t h[2]; } a = {v};
  for (int i = 0; i < 2; i++) a.h[i] = vqtbl1q_u8((uint8x16_t)table, a.h[i]);
  return a.v;
#endif
}

// The same for 64 bytes.
INL u8x64 look_up64(u8x16 table, u8x64 v) {
#if defined(__AVX512VNNI__)
  u8x32 twice = JOIN16(table, table);
  return (u8x64)_mm512_shuffle_epi8((__m512i)JOIN32(twice, twice), (__m512i)v);
#else
  u8x32 h[2];
  STORE(h, v);
  u8x32 low = look_up(table, h[0]), high = look_up(table, h[1]);
  return JOIN32(low, high);
#endif
}
// Bit i of a word becomes byte i: all ones or zero.
INL u8x32 bit_mask(u32 bits) {
  u8x32 each = (u8x32)((u32x8){} + bits);
  each = SHUFFLE(each, each, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const u8x32 bit = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128,
                     1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  return (u8x32)((each & bit) == bit);
}
INL u8x64 bit_mask64(u64 bits) {
#if defined(__AVX512VNNI__)
  return (u8x64)_mm512_movm_epi8(bits);
#else
  u8x32 low = bit_mask((u32)bits), high = bit_mask((u32)(bits >> 32));
  return JOIN32(low, high);
#endif
}
// Negates the bytes whose bit is set.
INL u8x64 negate_where(u8x64 v, u64 bits) {
#if defined(__AVX512VNNI__)
  return (u8x64)_mm512_mask_sub_epi8((__m512i)v, bits, (__m512i){}, (__m512i)v);
#else
  u8x64 mask = bit_mask64(bits);
  return (v ^ mask) - mask;
#endif
}

// --- half floats ---

#if PLAIN_FLOATS
INL f32x4 half4(u16x4 h) {
  u32x4 t = CONVERT(h, u32x4);
  u32x4 special = (u32x4)((t & 0x7c00) == 0x7c00) & 0x7f800000;
  f32x4 f = (f32x4)((t & 0x7fff) << 13) * 5.192296858534828e+33f; // 2^112
  return (f32x4)((u32x4)f | special | ((t & 0x8000) << 16));
}
INL f32 half(u16 h) { return half4((u16x4){h})[0]; }
INL vf halves(const u16 *p) { return half4(LOAD(u16x4, p)); }
INL u16 to_half(f32 x) {
  union { f32 f; u32 u; } o = {x};
  u32 sign = o.u >> 16 & 0x8000;
  o.u &= 0x7fffffff;
  if (o.u > 0x7f800000) return sign | 0x7e00;
  if (o.u >= 0x477ff000) return sign | 0x7c00;
  if (o.u < 0x38800000) { // subnormal: the sum rounds
    o.f += 0.5f;
    return sign | (o.u - 0x3f000000);
  }
  u32 odd = o.u >> 13 & 1;
  return sign | ((o.u - 0x38000000 + 0xfff + odd) >> 13);
}
#else
typedef _Float16 vhalf VEC(2 * W);
typedef _Float16 half4_t VEC(8);
INL f32x4 half4(u16x4 h) { return CONVERT((half4_t)h, f32x4); }
INL f32 half(u16 h) {
  union { u16 u; _Float16 f; } o = {h};
  return o.f;
}
INL vf halves(const u16 *p) { return CONVERT(LOAD(vhalf, p), vf); }
INL u16 to_half(f32 x) {
  union { u16 u; _Float16 f; } o;
  o.f = (_Float16)x;
  return o.u;
}
#endif
INL void to_halves(u16 *p, vf v) {
#if PLAIN_FLOATS
  UNROLL for (int i = 0; i < W; i++) p[i] = to_half(v[i]);
#else
  STORE(p, CONVERT(v, vhalf));
#endif
}

// --- floats ---

// W values from p, or the existing ones and zeros.
#if W == 16
#define FIRST(there) ((__mmask16)((1u << (there)) - 1))
INL vf load_part(const f32 *p, int there) { return (vf)_mm512_maskz_loadu_ps(FIRST(there), p); }
INL void store_part(f32 *p, vf v, int there) { _mm512_mask_storeu_ps(p, FIRST(there), (__m512)v); }
#else
NOINL vf load_part(const f32 *p, int there) {
  vf v = {};
  for (int i = 0; i < there; i++) v[i] = p[i];
  return v;
}
NOINL void store_part(f32 *p, vf v, int there) {
  for (int i = 0; i < there; i++) p[i] = v[i];
}
#endif
INL vf load_some(const f32 *p, int there) { return there >= W ? LOAD(vf, p) : load_part(p, there); }
INL void store_some(f32 *p, vf v, int there) {
  if (there >= W) STORE(p, v);
  else store_part(p, v, there);
}
INL vf splat(f32 x) { return x - (vf){}; } // equals x even for −0, so no addition is made
INL f32 sum4(f32x4 a) { return (a[0] + a[2]) + (a[1] + a[3]); }
INL f32 sum8(f32x8 a) { return sum4(SHUFFLE(a, a, 0, 1, 2, 3) + SHUFFLE(a, a, 4, 5, 6, 7)); }
INL f32 sum16(f32x16 a) { return sum8(LOW8(a) + HIGH8(a)); }
INL f32 sum(vf a) {
#if W == 16
  return sum16(a);
#elif W == 8
  return sum8(a);
#else
  return sum4(a);
#endif
}
// a > b ? a : b, which is an instruction of x86-64; elsewhere by mask: a builtin would call fmaxf in WebAssembly.
#if W == 16
INL vf vmax(vf a, vf b) { return (vf)_mm512_max_ps((__m512)a, (__m512)b); }
INL vf vmin(vf a, vf b) { return (vf)_mm512_min_ps((__m512)a, (__m512)b); }
#elif W == 8
INL vf vmax(vf a, vf b) { return (vf)_mm256_max_ps((__m256)a, (__m256)b); }
INL vf vmin(vf a, vf b) { return (vf)_mm256_min_ps((__m256)a, (__m256)b); }
#elif defined(__x86_64__)
INL vf vmax(vf a, vf b) { return (vf)_mm_max_ps((__m128)a, (__m128)b); }
INL vf vmin(vf a, vf b) { return (vf)_mm_min_ps((__m128)a, (__m128)b); }
#else
INL vf vmax(vf a, vf b) {
  vi more = a > b;
  return (vf)(((vi)a & more) | ((vi)b & ~more));
}
INL vf vmin(vf a, vf b) {
  vi less = a < b;
  return (vf)(((vi)a & less) | ((vi)b & ~less));
}
#endif
INL vf vabs(vf a) { return (vf)((vi)a & 0x7fffffff); }
INL f32 largest(vf a) {
  f32 most = a[0];
  for (int i = 1; i < W; i++) most = a[i] > most ? a[i] : most;
  return most;
}
// The same for integers; `how` combines two registers.
#define ACROSS(how) \
  union { vi v; i32x4 quarters[W / 4]; } all = {a}; \
  i32x4 v = all.quarters[0]; \
  UNROLL for (int i = 1; i < W / 4; i++) v = how(v, all.quarters[i]); \
  v = how(v, SHUFFLE(v, v, 2, 3, 0, 1)); \
  v = how(v, SHUFFLE(v, v, 1, 0, 3, 2)); \
  return v[0];
#define PLUS(a, b) ((a) + (b))
INL i32 largest_int(vi a) { ACROSS(__builtin_elementwise_max) }
INL i32 sum_int(vi a) { ACROSS(PLUS) }
// The closest integers.
INL vi to_integers(vf x) {
#if W == 16
  return (vi)_mm512_cvtps_epi32((__m512)x);
#elif W == 8
  return (vi)_mm256_cvtps_epi32((__m256)x);
#else
  return CONVERT(__builtin_elementwise_roundeven(x), vi);
#endif
}
// Integers as 16-bit words: four of a, four of b, and so on.
INL vh pack_words(vi a, vi b) {
#if W == 16
  return (vh)_mm512_packs_epi32((__m512i)a, (__m512i)b);
#elif W == 8
  return (vh)_mm256_packs_epi32((__m256i)a, (__m256i)b);
#else
  return SHUFFLE((vh)a, (vh)b, 0, 2, 4, 6, 8, 10, 12, 14);
#endif
}
#if W == 16
INL vf fraction(vf x) { return (vf)_mm512_reduce_ps((__m512)x, 1); } // x − ⌊x⌋
// a · 2^⌊x⌋; 0 for x < −126, because subnormal numbers take a hundred times as long.
INL vf times_power(vf a, vf x) {
  const __mmask16 large = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-126), _CMP_NLT_UQ);
  return (vf)_mm512_maskz_scalef_ps(large, (__m512)a, (__m512)x);
}
#endif
// For each four lanes: the first two of a and b interleaved, the last two interleaved, the first two in sequence, the
// last two.
#if W == 16
#define TURNS_LOW(a, b) (vi)_mm512_unpacklo_epi32((__m512i)(a), (__m512i)(b))
#define TURNS_HIGH(a, b) (vi)_mm512_unpackhi_epi32((__m512i)(a), (__m512i)(b))
#define BOTH_LOW(a, b) (vi)_mm512_unpacklo_epi64((__m512i)(a), (__m512i)(b))
#define BOTH_HIGH(a, b) (vi)_mm512_unpackhi_epi64((__m512i)(a), (__m512i)(b))
#elif W == 8
#define TURNS_LOW(a, b) SHUFFLE(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define TURNS_HIGH(a, b) SHUFFLE(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define BOTH_LOW(a, b) SHUFFLE(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define BOTH_HIGH(a, b) SHUFFLE(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#else
#define TURNS_LOW(a, b) SHUFFLE(a, b, 0, 4, 1, 5)
#define TURNS_HIGH(a, b) SHUFFLE(a, b, 2, 6, 3, 7)
#define BOTH_LOW(a, b) SHUFFLE(a, b, 0, 1, 4, 5)
#define BOTH_HIGH(a, b) SHUFFLE(a, b, 2, 3, 6, 7)
#endif
// Transposes words, four from each of W addresses that lie `step` bytes apart, to (4 words, W).
INL void turn_words(const void *p, i64 step, vi to[4]) {
  vi v[4];
  UNROLL for (int i = 0; i < 4; i++) {
    union { i32x4 quarters[W / 4]; vi v; } all;
    UNROLL for (int j = 0; j < W / 4; j++) all.quarters[j] = LOAD(i32x4, (const u8 *)p + (4 * j + i) * step);
    v[i] = all.v;
  }
  const vi low = TURNS_LOW(v[0], v[1]), low2 = TURNS_LOW(v[2], v[3]);
  const vi high = TURNS_HIGH(v[0], v[1]), high2 = TURNS_HIGH(v[2], v[3]);
  to[0] = BOTH_LOW(low, low2);
  to[1] = BOTH_HIGH(low, low2);
  to[2] = BOTH_LOW(high, high2);
  to[3] = BOTH_HIGH(high, high2);
}
// 1 / √x
INL f32 inverse_root(f32 x) {
#if defined(__wasm__) || defined(__aarch64__)
  return 1 / __builtin_sqrtf(x);
#else
  return 1 / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
#endif
}

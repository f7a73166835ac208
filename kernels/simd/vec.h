// vec: lanes, loads and integer products of every instruction set. The only file with intrinsics.
//
// Everything else is written in clang's vector types, which lower well on all of them. Sums of floats are written as
// `fma` where they are meant to be one, and the compiler contracts nothing: so the same sum has the same bits in every
// variant of a loop.
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
// On Windows functions that only this library calls pass and keep registers as on other systems: its own convention has
// each save ten registers of vectors.
#if defined(_WIN32) && defined(__x86_64__)
#define NOINL static __attribute__((noinline, sysv_abi))
#else
#define NOINL static __attribute__((noinline))
#endif
#define UNROLL _Pragma("clang loop unroll(full)")
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define AHEAD 4096 // bytes between what is read and what is fetched: a page

// W lanes in a register, PANEL_REGS registers of weight rows in a panel, TILE tokens multiplied by it at once.
#if defined(__AVX512VNNI__)
#define W 16
#define PANEL_REGS 2
#define TILE 6
#elif defined(__AVX2__)
#define W 8
#define PANEL_REGS 2
#define TILE 4
#elif defined(__wasm__)
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
#if defined(__wasm__)
#define FMA(a, b, c) ((a) * (b) + (c))
#else
#define FMA(a, b, c) __builtin_elementwise_fma(a, b, c)
#endif

// --- products of bytes: lane i of the sum gets Σ u[4i+j] · x[4i+j], j = 0 … 3 ---

// u: 0 … 127; with AVX-512 0 … 255
INL i32x8 dot32(u8x32 u, i8x32 x) {
#if defined(__AVX512VNNI__)
  return (i32x8)_mm256_dpbusd_epi32(_mm256_setzero_si256(), (__m256i)u, (__m256i)x);
#elif defined(__AVX2__)
  return (i32x8)_mm256_madd_epi16(_mm256_maddubs_epi16((__m256i)u, (__m256i)x), _mm256_set1_epi16(1));
#elif defined(__wasm__)
  union { i32x8 v; v128_t h[2]; } a = {(i32x8){}}, b = {(i32x8)u}, c = {(i32x8)x};
  for (int i = 0; i < 2; i++) a.h[i] = wasm_i32x4_relaxed_dot_i8x16_i7x16_add(c.h[i], b.h[i], a.h[i]);
  return a.v;
#else
  union { i32x8 v; int32x4_t h[2]; } a = {(i32x8){}};
  union { u8x32 v; int8x16_t h[2]; } b = {u};
  union { i8x32 v; int8x16_t h[2]; } c = {x};
  for (int i = 0; i < 2; i++) a.h[i] = vdotq_s32(a.h[i], b.h[i], c.h[i]);
  return a.v;
#endif
}

// The same for any int8 in place of u. With AVX-512 nobody asks: units are made unsigned.
INL i32x8 dot32s(i8x32 s, i8x32 x) {
#if defined(__AVX2__)
  return dot32((u8x32)_mm256_abs_epi8((__m256i)s), (i8x32)_mm256_sign_epi8((__m256i)x, (__m256i)s));
#elif defined(__wasm__)
  union { i32x8 v; v128_t h[2]; } a, b = {(i32x8)s}, c = {(i32x8)x};
  for (int i = 0; i < 2; i++) {
    v128_t low = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(b.h[i]), wasm_i16x8_extend_low_i8x16(c.h[i]));
    v128_t high = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(b.h[i]), wasm_i16x8_extend_high_i8x16(c.h[i]));
    a.h[i] = wasm_i32x4_add(wasm_i32x4_shuffle(low, high, 0, 2, 4, 6), wasm_i32x4_shuffle(low, high, 1, 3, 5, 7));
  }
  return a.v;
#else
  return dot32((u8x32)s, x);
#endif
}

INL i32x16 dot64(int is_signed, u8x64 u, i8x64 x) {
#if defined(__AVX512VNNI__)
  return (i32x16)_mm512_dpbusd_epi32(_mm512_setzero_si512(), (__m512i)u, (__m512i)x);
#else
  union { u8x64 v; u8x32 h[2]; } a = {u};
  union { i8x64 v; i8x32 h[2]; } b = {x};
  i32x8 low = is_signed ? dot32s((i8x32)a.h[0], b.h[0]) : dot32(a.h[0], b.h[0]);
  i32x8 high = is_signed ? dot32s((i8x32)a.h[1], b.h[1]) : dot32(a.h[1], b.h[1]);
  return JOIN8(low, high);
#endif
}

// acc + the product of one register
INL vi dot_add(int is_signed, vi acc, vu u, vs x) {
#if defined(__AVX512VNNI__)
  return (vi)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)u, (__m512i)x);
#elif defined(__AVX2__)
  return acc + (is_signed ? dot32s((i8x32)u, x) : dot32(u, x));
#elif defined(__wasm__)
  if (!is_signed) return (vi)wasm_i32x4_relaxed_dot_i8x16_i7x16_add((v128_t)x, (v128_t)u, (v128_t)acc);
  v128_t b = (v128_t)u, c = (v128_t)x;
  v128_t low = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(b), wasm_i16x8_extend_low_i8x16(c));
  v128_t high = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(b), wasm_i16x8_extend_high_i8x16(c));
  return acc + (vi)wasm_i32x4_add(wasm_i32x4_shuffle(low, high, 0, 2, 4, 6), wasm_i32x4_shuffle(low, high, 1, 3, 5, 7));
#else
  return (vi)vdotq_s32((int32x4_t)acc, (int8x16_t)u, (int8x16_t)x);
#endif
}

// The same where only the sum of all lanes is asked for.
INL vi dot_add_any(int is_signed, vi acc, vu u, vs x) {
#if defined(__wasm__)
  if (is_signed) {
    v128_t b = (v128_t)u, c = (v128_t)x;
    return acc + (vi)wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(b), wasm_i16x8_extend_low_i8x16(c)) +
           (vi)wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(b), wasm_i16x8_extend_high_i8x16(c));
  }
#endif
  return dot_add(is_signed, acc, u, x);
}

// acc + products of 16-bit words, by twos. WORD_PRODUCTS: a register has twice as many of them as of floats in the same time.
INL vi dot_words(vi acc, vh a, vh b) {
#if defined(__AVX512VNNI__)
  return (vi)_mm512_dpwssd_epi32((__m512i)acc, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return acc + (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__wasm__)
  return acc + (vi)wasm_i32x4_dot_i16x8((v128_t)a, (v128_t)b);
#else
  return (vi)vmlal_high_s16(vmull_s16(vget_low_s16((int16x8_t)a), vget_low_s16((int16x8_t)b)), (int16x8_t)a, (int16x8_t)b);
#endif
}
#if defined(__x86_64__) || defined(__wasm__)
#define WORD_PRODUCTS 1
#else
#define WORD_PRODUCTS 0
#endif
// Whether panels of float weights may be words too: where two steps of words cost less than two of floats.
#if defined(__x86_64__)
#define WORD_PANELS 1
#else
#define WORD_PANELS 0
#endif

// Where a product is two instructions, those of weights up to 15 add up in 16 bits over a group of 32: 8 · 2 · 15 · 127,
// and those of weights that lie within ±2^k of 2^k where sums begin with −2^k · Σx: 8 · 2 · 16 · 127, 4 · 2 · 32 · 127.
#if defined(__AVX2__) && !defined(__AVX512VNNI__)
#define NARROW 1
INL vh dot_narrow(vh acc, vu u, vs x) { return acc + (vh)_mm256_maddubs_epi16((__m256i)u, (__m256i)x); }
INL vi widen(vh a) { return (vi)_mm256_madd_epi16((__m256i)a, _mm256_set1_epi16(1)); }
// Ends a step: the compiler would sum several as a tree, and push half of it to memory.
#define HOLD(v) __asm__("" : "+x"(v))
#elif defined(__wasm__)
#define NARROW 1
INL vh dot_narrow(vh acc, vu u, vs x) { return acc + (vh)wasm_i16x8_relaxed_dot_i8x16_i7x16((v128_t)x, (v128_t)u); }
INL vi widen(vh a) { return (vi)wasm_i32x4_extadd_pairwise_i16x8((v128_t)a); }
#else
#define NARROW 0
INL vh dot_narrow(vh acc, vu u, vs x) { return acc; }
INL vi widen(vh a) { return (vi)a; }
#endif

// AVX-VNNI, which a processor of that level may have besides: functions WITH_AVXVNNI are called where the header of passes says
// so. On Linux: no Mac has it, and on Windows nothing looks for it.
#if defined(__AVX2__) && !defined(__AVX512VNNI__) && defined(__linux__)
#define AVXVNNI 1
#define WITH_AVXVNNI __attribute__((target("avxvnni")))
// acc + products of bytes, of any u, in one instruction
WITH_AVXVNNI INL vi vnni_add(vi acc, vu u, vs x) { return (vi)_mm256_dpbusd_avx_epi32((__m256i)acc, (__m256i)u, (__m256i)x); }
// An integer below 2^22 added to the bits of 1.5 · 2^23 is added to the float.
#define EXACT 0x4b400000
INL vf exact_float(vi v) { return (vf)v - 12582912.0f; }
#else
#define AVXVNNI 0
#endif
// The same of I8MM, which processors with the products of NEON may have.
#if defined(__aarch64__) && defined(__linux__)
#define I8MM 1
#define WITH_I8MM __attribute__((target("i8mm")))
// acc + eight products of each of two rows and two tokens: row 0 with token 0 and 1, then row 1
WITH_I8MM INL vi i8mm_add(vi acc, vu rows, vs tokens) { return (vi)vmmlaq_s32((int32x4_t)acc, (int8x16_t)rows, (int8x16_t)tokens); }
#else
#define I8MM 0
#endif

#if !defined(HOLD)
#define HOLD(v)
#endif

#if defined(__AVX512VNNI__)
typedef u64 u64x8 VEC(64);
INL u64x8 rotate_left(u64x8 v, u64x8 by) { return (u64x8)_mm512_rolv_epi64((__m512i)v, (__m512i)by); }
#endif

// Each byte of v, 0 … 15, is replaced by what the table has there.
INL u8x32 look_up(u8x16 table, u8x32 v) {
#if defined(__AVX2__)
  u8x32 both = JOIN16(table, table);
  return (u8x32)_mm256_shuffle_epi8((__m256i)both, (__m256i)v);
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

// --- half floats ---

#if defined(__wasm__)
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
#if defined(__wasm__)
  UNROLL for (int i = 0; i < W; i++) p[i] = to_half(v[i]);
#else
  STORE(p, CONVERT(v, vhalf));
#endif
}

// --- floats ---

// W values from p, or as many as there are and zeros.
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
INL vf splat(f32 x) { return x - (vf){}; } // which is x even for −0, so that no sum is made
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
// Selects by mask: a builtin would call fmaxf in WebAssembly.
INL vf vmax(vf a, vf b) {
  vi more = a > b;
  return (vf)(((vi)a & more) | ((vi)b & ~more));
}
INL vf vmin(vf a, vf b) {
  vi less = a < b;
  return (vf)(((vi)a & less) | ((vi)b & ~less));
}
INL vf vabs(vf a) { return (vf)((vi)a & 0x7fffffff); }
INL f32 largest(vf a) {
  f32 most = a[0];
  for (int i = 1; i < W; i++) most = a[i] > most ? a[i] : most;
  return most;
}
// The same of integers; `how` joins two registers.
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
// a · 2^⌊x⌋; 0 where x is less than −126, as numbers so small take a hundred times as long.
INL vf times_power(vf a, vf x) {
  const __mmask16 large = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-126), _CMP_NLT_UQ);
  return (vf)_mm512_maskz_scalef_ps(large, (__m512)a, (__m512)x);
}
#endif
// 1 / √x
INL f32 inverse_root(f32 x) {
#if defined(__wasm__) || defined(__aarch64__)
  return 1 / __builtin_sqrtf(x);
#else
  return 1 / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
#endif
}

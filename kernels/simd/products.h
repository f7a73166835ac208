// products: integer products for every instruction set. With vec.h the only file with intrinsics.
#pragma once
#include "vec.h"

// --- products of bytes: lane i of the sum gets Σ u[4i+j] · x[4i+j], j = 0 … 3 ---

#if defined(__x86_64__) && !defined(__AVX2__)
INL i32x4 dot16(u8x16 u, i8x16 x) {
  return (i32x4)_mm_madd_epi16(_mm_maddubs_epi16((__m128i)u, (__m128i)x), _mm_set1_epi16(1));
}
INL i32x4 dot16s(i8x16 s, i8x16 x) {
  return dot16((u8x16)_mm_abs_epi8((__m128i)s), (i8x16)_mm_sign_epi8((__m128i)x, (__m128i)s));
}
#elif defined(__aarch64__)
// Pairs of products fit in 16 bits: 2 · 128 · 127.
INL int32x4_t dot_bytes(int32x4_t acc, int8x16_t u, int8x16_t x) {
#if defined(__ARM_FEATURE_DOTPROD)
  return vdotq_s32(acc, u, x);
#else
  const int16x8_t low = vmull_s8(vget_low_s8(u), vget_low_s8(x)), high = vmull_high_s8(u, x);
  return vpadalq_s16(acc, vpaddq_s16(low, high));
#endif
}
#endif

// u: 0 … 127; with AVX-512 0 … 255
INL i32x8 dot32(u8x32 u, i8x32 x) {
#if defined(__AVX512VNNI__)
  return (i32x8)_mm256_dpbusd_epi32(_mm256_setzero_si256(), (__m256i)u, (__m256i)x);
#elif defined(__AVX2__)
  return (i32x8)_mm256_madd_epi16(_mm256_maddubs_epi16((__m256i)u, (__m256i)x), _mm256_set1_epi16(1));
#elif defined(__x86_64__)
  union { i32x8 v; i32x4 h[2]; } a;
  union { u8x32 v; u8x16 h[2]; } b = {u};
  union { i8x32 v; i8x16 h[2]; } c = {x};
  for (int i = 0; i < 2; i++) a.h[i] = dot16(b.h[i], c.h[i]);
  return a.v;
#elif defined(__wasm__)
  union { i32x8 v; v128_t h[2]; } a = {(i32x8){}}, b = {(i32x8)u}, c = {(i32x8)x};
  for (int i = 0; i < 2; i++) a.h[i] = wasm_i32x4_relaxed_dot_i8x16_i7x16_add(c.h[i], b.h[i], a.h[i]);
  return a.v;
#else
  union { i32x8 v; int32x4_t h[2]; } a = {(i32x8){}};
  union { u8x32 v; int8x16_t h[2]; } b = {u};
  union { i8x32 v; int8x16_t h[2]; } c = {x};
  for (int i = 0; i < 2; i++) a.h[i] = dot_bytes(a.h[i], b.h[i], c.h[i]);
  return a.v;
#endif
}

// The same for any int8 in place of u. Unused with AVX-512: units are made unsigned.
INL i32x8 dot32s(i8x32 s, i8x32 x) {
#if defined(__AVX2__)
  return dot32((u8x32)_mm256_abs_epi8((__m256i)s), (i8x32)_mm256_sign_epi8((__m256i)x, (__m256i)s));
#elif defined(__x86_64__)
  union { i32x8 v; i32x4 h[2]; } a;
  union { i8x32 v; i8x16 h[2]; } b = {s}, c = {x};
  for (int i = 0; i < 2; i++) a.h[i] = dot16s(b.h[i], c.h[i]);
  return a.v;
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

// acc + the product of one register
INL vi dot_add(int is_signed, vi acc, vu u, vs x) {
#if defined(__AVX512VNNI__)
  return (vi)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)u, (__m512i)x);
#elif defined(__AVX2__)
  return acc + (is_signed ? dot32s((i8x32)u, x) : dot32(u, x));
#elif defined(__x86_64__)
  return acc + (is_signed ? dot16s((i8x16)u, x) : dot16(u, x));
#elif defined(__wasm__)
  if (!is_signed) return (vi)wasm_i32x4_relaxed_dot_i8x16_i7x16_add((v128_t)x, (v128_t)u, (v128_t)acc);
  v128_t b = (v128_t)u, c = (v128_t)x;
  v128_t low = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(b), wasm_i16x8_extend_low_i8x16(c));
  v128_t high = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(b), wasm_i16x8_extend_high_i8x16(c));
  return acc + (vi)wasm_i32x4_add(wasm_i32x4_shuffle(low, high, 0, 2, 4, 6), wasm_i32x4_shuffle(low, high, 1, 3, 5, 7));
#else
  return (vi)dot_bytes((int32x4_t)acc, (int8x16_t)u, (int8x16_t)x);
#endif
}

// The same if only the sum of all lanes matters.
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

// acc + products of 16-bit words, in pairs. WORD_PRODUCTS: a register does twice as many of them as of floats in the
// same time.
INL vi dot_words(vi acc, vh a, vh b) {
#if defined(__AVX512VNNI__)
  return (vi)_mm512_dpwssd_epi32((__m512i)acc, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return acc + (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__x86_64__)
  return acc + (vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
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
// Enables panels of float weights as words, where two steps of words cost less than two of floats.
#if defined(__AVX2__)
#define WORD_PANELS 1
#else
#define WORD_PANELS 0
#endif

// If a product takes two instructions, products of weights up to 15 are summed in 16 bits over a group of 32: 8 · 2 ·
// 15 · 127, and so are products of weights within ±2^k of 2^k if sums begin with −2^k · Σx: 8 · 2 · 16 · 127, 4 · 2 ·
// 32 · 127.
#if defined(__AVX2__) && !defined(__AVX512VNNI__)
#define NARROW 1
INL vh dot_narrow(vh acc, vu u, vs x) { return acc + (vh)_mm256_maddubs_epi16((__m256i)u, (__m256i)x); }
INL vi widen(vh a) { return (vi)_mm256_madd_epi16((__m256i)a, _mm256_set1_epi16(1)); }
// Ends a step: otherwise the compiler sums several as a tree, and spills half of it.
#define HOLD(v) __asm__("" : "+x"(v))
#elif defined(__x86_64__) && !defined(__AVX2__)
#define NARROW 1
INL vh dot_narrow(vh acc, vu u, vs x) { return acc + (vh)_mm_maddubs_epi16((__m128i)u, (__m128i)x); }
INL vi widen(vh a) { return (vi)_mm_madd_epi16((__m128i)a, _mm_set1_epi16(1)); }
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

// AVX-VNNI, which a processor of that level may have too: functions WITH_AVXVNNI are called if the header of passes
// says so. Macs do not have it.
#if defined(__AVX2__) && !defined(__AVX512VNNI__) && !defined(__APPLE__)
#define AVXVNNI 1
#define WITH_AVXVNNI __attribute__((target("avxvnni")))
// acc + products of bytes, of any u, in one instruction
WITH_AVXVNNI INL vi vnni_add(vi acc, vu u, vs x) { return (vi)_mm256_dpbusd_avx_epi32((__m256i)acc, (__m256i)u, (__m256i)x); }
// The same as a step that the compiler does not move, in functions that are compiled without it too.
INL vi vnni_step(vi acc, vu u, vs x) {
  __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc) : "x"(u), "x"(x));
  return acc;
}
// An integer below 2^22 added to the bits of 1.5 · 2^23 is added to the float.
#define EXACT 0x4b400000
INL vf exact_float(vi v) { return (vf)v - 12582912.0f; }
#else
#define AVXVNNI 0
INL vi vnni_step(vi acc, vu u, vs x) { return acc; }
#endif
// The same of I8MM, which processors with the products of NEON may have.
#if defined(__ARM_FEATURE_DOTPROD)
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

// chunks: a unit as 32 chunks of eight weights, of which each register of a unit has eight.
#pragma once
#include "../unit.h"
typedef u64 u64x4 VEC(32);
typedef u16 u16x32 VEC(64);

// Eight values for register j of a unit: OF its chunks, or the matching elements of v.
#if defined(__AVX512VNNI__) // (8 groups of 32), each with its chunk j
#define CHUNKS(OF, j) \
  (u64x8) {OF(j), OF(4 + j), OF(8 + j), OF(12 + j), OF(16 + j), OF(20 + j), OF(24 + j), OF(28 + j)}
#define CHUNK_WORDS(v, j) SHUFFLE(v, v, j, 4 + j, 8 + j, 12 + j, 16 + j, 20 + j, 24 + j, 28 + j)
#define CHUNK_GROUPS(v, j) (v)
#else
#define CHUNKS(OF, j) \
  (u64x8) {OF(8 * j), OF(8 * j + 1), OF(8 * j + 2), OF(8 * j + 3), OF(8 * j + 4), OF(8 * j + 5), OF(8 * j + 6), OF(8 * j + 7)}
#define CHUNK_WORDS(v, j) SHUFFLE(v, v, 8 * j, 8 * j + 1, 8 * j + 2, 8 * j + 3, 8 * j + 4, 8 * j + 5, 8 * j + 6, 8 * j + 7)
#define CHUNK_GROUPS(v, j) SHUFFLE(v, v, 2 * j, 2 * j, 2 * j, 2 * j, 2 * j + 1, 2 * j + 1, 2 * j + 1, 2 * j + 1)
#endif
#define EACH_REGISTER(DO) DO(0) DO(1) DO(2) DO(3)

// Spreads a bit for each of 256 weights, one byte per chunk, to one word per register.
INL u64x4 chunk_bits(u8x32 bits) {
#if defined(__AVX512VNNI__)
  return (u64x4)SHUFFLE(bits, bits, 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29, 2, 6, 10, 14, 18, 22, 26, 30, 3,
                        7, 11, 15, 19, 23, 27, 31);
#else
  return (u64x4)bits;
#endif
}

// Nibbles of eight blocks of 16 bytes, one for each group of 32, `step` bytes apart: low ones first.
#define BLOCK_WORDS(p, step) \
  (u64x8) {LOAD(u64, p), LOAD(u64, (p) + (step)), LOAD(u64, (p) + 2 * (step)), LOAD(u64, (p) + 3 * (step)), \
           LOAD(u64, (p) + 4 * (step)), LOAD(u64, (p) + 5 * (step)), LOAD(u64, (p) + 6 * (step)), LOAD(u64, (p) + 7 * (step))}
INL void block_nibbles(const u8 *p, int step, Unit *u) {
#if defined(__AVX512VNNI__)
  const u8x64 first = (u8x64)BLOCK_WORDS(p, step), last = (u8x64)BLOCK_WORDS(p + 8, step);
  u->v[0] = first & 15;
  u->v[1] = last & 15;
  u->v[2] = first >> 4;
  u->v[3] = last >> 4;
#else
  UNROLL for (int j = 0; j < 4; j++) u->v[j] = nibbles2(p + 2 * j * step, step);
#endif
}

// Pairs of bits of two blocks of 32 bytes: the lowest pairs are the first group of 32.
INL void block_pairs(const u8 *p, Unit *u) {
#if defined(__AVX512VNNI__)
  const u64x8 q = LOAD(u64x8, p), by = {0, 2, 4, 6, 0, 2, 4, 6};
#define PAIRS(j) u->v[j] = (u8x64)(SHUFFLE(q, q, j, j, j, j, 4 + j, 4 + j, 4 + j, 4 + j) >> by) & 3;
  EACH_REGISTER(PAIRS)
#undef PAIRS
#else
  UNROLL for (int j = 0; j < 4; j++) {
    const u8x32 q = LOAD(u8x32, p + j / 2 * 32) >> (j % 2 * 4), low = in_lanes(q & 3), high = in_lanes(q >> 2 & 3);
    u->v[j] = JOIN32(low, high);
  }
#endif
}

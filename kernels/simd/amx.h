// amx: products of bytes by AMX, of 16 tokens with 16 rows of weights at once.
//
// A tile register holds 16 rows of 64 bytes. The words of a panel have the order that a tile of weights has; activations
// are brought into theirs. Integer sums are exact, so AVX-512 VNNI gives the same bits. Linux only, where a process asks
// for the registers; AMX_EMULATED computes the same in C, for a test on other processors.
#pragma once
#include "unit.h"

#if defined(__AVX512VNNI__) && defined(__linux__)
#define AMX 1
#define AMX_TOKENS 16
typedef i32 AmxSums[PANEL_REGS][AMX_TOKENS][W];
typedef i8 AmxTokens[UNIT / 32][AMX_TOKENS][32]; // a unit by group of 32

// Copies unit b of a token: as packed, a register has eight values of each group.
INL void amx_token(const i8 *q, int token, AmxTokens to) {
  u64x8 v[4], pairs[4];
  UNROLL for (int i = 0; i < 4; i++) v[i] = LOAD(u64x8, q + i * 64);
  UNROLL for (int i = 0; i < 2; i++) {
    pairs[i] = SHUFFLE(v[2 * i], v[2 * i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    pairs[2 + i] = SHUFFLE(v[2 * i], v[2 * i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  UNROLL for (int odd = 0; odd < 2; odd++) {
    const u64x8 a = pairs[2 * odd], b = pairs[2 * odd + 1];
    const u64x8 first = SHUFFLE(a, b, 0, 1, 8, 9, 4, 5, 12, 13), second = SHUFFLE(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
    STORE(to[odd][token], SHUFFLE(first, first, 0, 1, 2, 3));
    STORE(to[odd + 2][token], SHUFFLE(second, second, 0, 1, 2, 3));
    STORE(to[odd + 4][token], SHUFFLE(first, first, 4, 5, 6, 7));
    STORE(to[odd + 6][token], SHUFFLE(second, second, 4, 5, 6, 7));
  }
}

#if AMX_EMULATED
#define WITH_AMX
INL int amx_begin(void) { return 1; }
INL void amx_end(void) {}
INL void amx_group(int odd, int by16, const i8 *tokens, const u8 *words, AmxSums sums) {
  for (int p = 0; p < PANEL_REGS; p++) for (int t = 0; t < AMX_TOKENS; t++) for (int r = 0; r < W; r++) {
    sums[p][t][r] = 0;
    for (int i = 0; i < (by16 ? 16 : 32); i++)
      sums[p][t][r] += tokens[t * 32 + i] * words[(i / 4 * PANEL_ROWS + p * W + r) * 4 + i % 4];
  }
}
#else
#define WITH_AMX __attribute__((target("amx-tile,amx-int8")))
// Asks Linux for the tile registers and sets their shapes: sums of even and odd groups, then tokens and weights of
// groups of 32, and of 16. Returns 0 if Linux refuses.
WITH_AMX NOINL int amx_begin(void) {
  enum { ARCH_PRCTL = 158, REQUEST = 0x1023, TILE_DATA = 18 };
  static const struct {
    u8 palette, start, unused[14];
    u16 row_bytes[16];
    u8 rows[16];
  } shapes = {1, 0, {}, {64, 64, 64, 64, 32, 64, 16, 64}, {16, 16, 16, 16, 16, 8, 16, 4}};
  i64 refused;
  __asm__ volatile("syscall" : "=a"(refused) : "0"(ARCH_PRCTL), "D"(REQUEST), "S"(TILE_DATA) : "rcx", "r11", "memory");
  if (refused) return 0;
  _tile_loadconfig(&shapes);
  return 1;
}
WITH_AMX NOINL void amx_end(void) { _tile_release(); }

// Sums of products of a group's weights with each token.
WITH_AMX INL void amx_group(int odd, int by16, const i8 *tokens, const u8 *words, AmxSums sums) {
#define TILES_OF(a, b, x, w) \
  _tile_zero(a); \
  _tile_zero(b); \
  _tile_loadd(x, tokens, 32); \
  _tile_loadd(w, words, PANEL_ROWS * 4); \
  _tile_dpbsud(a, x, w); \
  _tile_loadd(w, words + W * 4, PANEL_ROWS * 4); \
  _tile_dpbsud(b, x, w); \
  _tile_stored(a, sums[0], W * 4); \
  _tile_stored(b, sums[1], W * 4);
  if (by16 && odd) { TILES_OF(2, 3, 6, 7) }
  else if (by16) { TILES_OF(0, 1, 6, 7) }
  else if (odd) { TILES_OF(2, 3, 4, 5) }
  else { TILES_OF(0, 1, 4, 5) }
#undef TILES_OF
}
#endif
#else
#define AMX 0
#endif

// quantize: float weights to blocks of a type, with the bytes of ggml's reference quantizers. Freestanding, and built as
// WebAssembly only: reading and writing files takes longer than its 128-bit registers do.
#include "quantize/pack.h"

enum { F32 = 0, F16 = 1, BF16 = 30 }; // ggml_type
#define UNITS(TYPE) \
  TYPE(2, q4_0, 144) \
  TYPE(3, q4_1, 160) \
  TYPE(6, q5_0, 176) \
  TYPE(7, q5_1, 192) \
  TYPE(8, q8_0, 272)
#define BLOCKS(TYPE) \
  TYPE(10, q2_k, 84) \
  TYPE(11, q3_k, 110) \
  TYPE(12, q4_k, 144) \
  TYPE(13, q5_k, 176) \
  TYPE(14, q6_k, 210)

// Weights first … first + 256 as float32; those past the end are 0. Returns false if one is not finite.
static int load_unit(int from, const u8 *source, i64 first, i64 count, f32 *x) {
  ints special = {};
  for (i64 i = 0; i < UNIT_LEN; i += LANES) {
    lanes v = {};
    const i64 at = first + i;
    if (at + LANES <= count) {
      if (from == F32) v = LOAD(lanes, source + 4 * at);
      else if (from == F16) v = BOTH4(half4(LOAD(u16x4, source + 2 * at)), half4(LOAD(u16x4, source + 2 * at + 8)));
      else v = (lanes)(CONVERT(LOAD(u16x8, source + 2 * at), ints) << 16);
    }
    special |= ((ints)v & 0x7f800000) == 0x7f800000;
    STORE(x + i, v);
  }
  return !any(special);
}

// `count` weights, a multiple of 32, of a float type at `source` to blocks of type `to` at `out`, which has room for
// whole units. Both types are ggml's numbers. Returns −1, or the index of the first weight that is not finite, or −2 if
// a type is unknown.
__attribute__((visibility("default"), export_name("hearth_quantize"))) i32
hearth_quantize(i32 from, i32 to, const u8 *source, i32 count, u8 *out) {
  if (from != F32 && from != F16 && from != BF16) return -2;
  f32 weights[UNIT_LEN];
  lanes x[32];
  for (i64 first = 0; first < count; first += UNIT_LEN) {
    if (!load_unit(from, source, first, count, weights))
      for (int i = 0;; i++)
        if (!(__builtin_fabsf(weights[i]) < __builtin_inff())) return (i32)first + i;
    switch (to) {
#define UNIT_TYPE(number, name, size) case number: turn(weights, 32, x); pack_##name(x, out); out += size; break;
      UNITS(UNIT_TYPE)
#define BLOCK_TYPE(number, name, size) case number: pack_##name(weights, out); out += size; break;
      BLOCKS(BLOCK_TYPE)
      default: return -2;
    }
  }
  return -1;
}

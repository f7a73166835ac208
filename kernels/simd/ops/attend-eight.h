// attend-eight: scores and sums of values over a cache of 8 bits, by products of 16-bit words.
//
// A query is rounded to words by a scale of its own, and shares times the scales of values by one for each 32 values
// and block of positions. Integer sums are exact: 256 · 127 · 32766 < 2^31.
#pragma once
#include "../words.h"
#include "kv.h"

#define EIGHT_QUERIES 4
#define WORD_MOST 32766.0f
#define EIGHT_LANES (2 * W) // positions whose scores are computed together, and values that are summed together

typedef struct {
  i16 q[HEAD_MAX];
  f32 scale;
} EightQuery;
NOINL void pack_eight(EightQuery *to, const f32 *q, int dim) {
  const vf inverse = splat(inverse_share(largest_between(q, 0, dim), WORD_MOST, &to->scale));
  for (int d = 0; d < dim; d += W) store_words(to->q + d, LOAD(vf, q + d), inverse);
}
typedef i8 bytes_of_words VEC(2 * W);
INL vh byte_words(const u8 *p) { return CONVERT(LOAD(bytes_of_words, p), vh); }
INL vh splat_words(const i16 *p) { return (vh)((vi){} + LOAD(i32, p)); }

// A step of `next` is two values of EIGHT_LANES keys.
INL void eight_scores(int count, const u8 *keys, int dim, const EightQuery *queries, Span span, Stream next, f32 (*scores)[BLOCK]) {
  const i64 tile_bytes = 16 * eight_bytes(dim);
  for (int at = span.first; at < span.last; at += EIGHT_LANES) {
    const u8 *k[2];
    vf acc[EIGHT_QUERIES][2];
    UNROLL for (int r = 0; r < 2; r++) k[r] = keys + at_tile(at + r * W) * tile_bytes + at_place(at + r * W) * 2;
    UNROLL for (int i = 0; i < count; i++) UNROLL for (int r = 0; r < 2; r++) acc[i][r] = (vf){};
    for (int g = 0; g < dim; g += KV_GROUP) {
      vi sums[EIGHT_QUERIES][2];
      UNROLL for (int i = 0; i < count; i++) UNROLL for (int r = 0; r < 2; r++) sums[i][r] = (vi){};
      for (int d = g; d < MIN(g + KV_GROUP, dim); d += 2, next.from += next.each) {
        vh v[2];
        __builtin_prefetch(next.from, 0, 2);
        UNROLL for (int r = 0; r < 2; r++) v[r] = byte_words(k[r] + d * 16);
        UNROLL for (int i = 0; i < count; i++) {
          const vh q = splat_words(queries[i].q + d);
          UNROLL for (int r = 0; r < 2; r++) sums[i][r] = dot_words(sums[i][r], v[r], q);
        }
      }
      UNROLL for (int r = 0; r < 2; r++) {
        const vf scale = LOAD(vf, keys + at_tile(at + r * W) * tile_bytes + eight_scale(dim, at_place(at + r * W), g));
        UNROLL for (int i = 0; i < count; i++) acc[i][r] = FMA(CONVERT(sums[i][r], vf), scale, acc[i][r]);
      }
    }
    UNROLL for (int i = 0; i < count; i++) UNROLL for (int r = 0; r < 2; r++)
      STORE(&scores[i][at - span.block + r * W], acc[i][r] * queries[i].scale);
  }
}

// A step of `next` is EIGHT_LANES values of two positions.
INL void eight_sums(int count, const u8 *values, int filled, Span span, Stream next, const f32 (*scores)[BLOCK], f32 (*sums)[HEAD_MAX]) {
  const i64 tile_bytes = 16 * eight_bytes(filled);
  const int begin = span.first / 16 * 16, end = (span.end + 15) / 16 * 16;
  f32 factors[BLOCK], most[EIGHT_QUERIES], inverse[EIGHT_QUERIES], scales[EIGHT_QUERIES];
  i16 shares[EIGHT_QUERIES][BLOCK];
  for (int i = 0; i < count; i++) most[i] = largest_between(scores[i], begin - span.block, end - span.block);
  for (int g = 0; g < filled; g += KV_GROUP) {
    const f32 factor = scale_factors(KV_Q8_0, values + eight_scale(filled, 0, g), tile_bytes, span, factors);
    for (int i = 0; i < count; i++) inverse[i] = inverse_share(factor * most[i], WORD_MOST, &scales[i]);
    for (int at = begin - span.block; at < end - span.block; at += W) {
      const vf f = LOAD(vf, factors + at);
      UNROLL for (int i = 0; i < count; i++) store_words(shares[i] + at, LOAD(vf, &scores[i][at]), f * splat(inverse[i]));
    }
    for (int d = g; d < MIN(g + KV_GROUP, filled); d += EIGHT_LANES) {
      vi acc[EIGHT_QUERIES][2];
      UNROLL for (int i = 0; i < count; i++) UNROLL for (int r = 0; r < 2; r++) acc[i][r] = (vi){};
      for (int tile = begin; tile < end; tile += 16) {
        const u8 *from = values + at_tile(tile) * tile_bytes + d * 2;
        for (int at = tile - span.block; at < tile - span.block + 16; at += 2, from += 2 * filled, next.from += next.each) {
          vh v[2];
          __builtin_prefetch(next.from, 0, 2);
          UNROLL for (int r = 0; r < 2; r++) v[r] = byte_words(from + r * 2 * W);
          UNROLL for (int i = 0; i < count; i++) {
            const vh share = splat_words(&shares[i][at]);
            UNROLL for (int r = 0; r < 2; r++) acc[i][r] = dot_words(acc[i][r], v[r], share);
          }
        }
      }
      UNROLL for (int i = 0; i < count; i++) UNROLL for (int r = 0; r < 2; r++) if (r == 0 || d + r * W < filled) {
        f32 *to = &sums[i][d + r * W];
        STORE(to, FMA(CONVERT(acc[i][r], vf), splat(scales[i]), LOAD(vf, to)));
      }
    }
  }
}
#define DEFINE(name, count) \
  NOINL void eight_scores_##name(const u8 *keys, int dim, const EightQuery *queries, Span span, Stream next, f32 (*scores)[BLOCK]) { \
    eight_scores(count, keys, dim, queries, span, next, scores); \
  } \
  NOINL void eight_sums_##name(const u8 *values, int filled, Span span, Stream next, const f32 (*scores)[BLOCK], f32 (*sums)[HEAD_MAX]) { \
    eight_sums(count, values, filled, span, next, scores, sums); \
  }
#if WORD_PRODUCTS
DEFINE(one, 1)
DEFINE(some, EIGHT_QUERIES)
#endif
#undef DEFINE

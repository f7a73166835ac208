// attend-four: scores and sums of values over a cache of 4 bits, by products of bytes.
//
// Queries are rounded to 8 bits for each 32 values. Shares times the scales of values are rounded to 7 bits for each 32
// values and block of positions, and what rounding takes from a position is given to a later one: many small shares
// next to a large one keep their sum. Integer sums are exact.
#pragma once
#include "kv.h"

#define FOUR_QUERIES (W == 16 || NARROW ? 4 : 2)
#define SHARE_MAX 126.4f // plus the remainder of an earlier share: at most 127

typedef struct {
  i8 q[HEAD_MAX];
  f32 scales[HEAD_MAX / 32];
  i32 less[HEAD_MAX / 32];
} FourQuery;
NOINL void pack_four(FourQuery *to, const f32 *q, int dim) {
  for (int g = 0; g < dim / 32; g++, q += 32) {
    vi most = {}, total = {};
    for (int i = 0; i < 32; i += W) most = __builtin_elementwise_max(most, LOAD(vi, q + i) & 0x7fffffff);
    const i32 bits = largest_int(most);
    const f32 scale = LOAD(f32, &bits), inverse = scale > SCALED_MIN && bits < 0x7f800000 ? 127 / scale : 0;
    for (int i = 0; i < 32; i += W) {
      const vi n = bits < 0x7f800000 ? to_integers(LOAD(vf, q + i) * inverse) : (vi){};
      STORE(to->q + g * 32 + i, CONVERT(n, small));
      total += n;
    }
    to->scales[g] = bits < 0x7f800000 ? scale / 127 : __builtin_nanf("");
    to->less[g] = FOUR_LESS * sum_int(total);
  }
}
// Sums of products, if NARROW in 16 bits for eight steps: 8 · 2 · 15 · 127.
#if NARROW
typedef vh FourSum;
INL FourSum four_add(FourSum sum, vu u, vs x) { return dot_narrow(sum, u, x); }
INL vi four_total(FourSum sum) { return widen(sum); }
#else
typedef vi FourSum;
INL FourSum four_add(FourSum sum, vu u, vs x) { return dot_add(0, sum, u, x); }
INL vi four_total(FourSum sum) { return sum; }
#endif
#define FOUR_STEPS 8
INL vs splat_word(const void *p) { return (vs)((vi){} + LOAD(i32, p)); }

// Prefetches `next`, one cache line per step.
INL void four_scores(int count, const u8 *keys, int dim, const FourQuery *queries, Span span, const u8 *next, f32 (*scores)[BLOCK]) {
  const i64 tile_bytes = 16 * kv_bytes(KV_Q4_0, dim);
  for (int at = span.first; at < span.last; at += 2 * W) {
    const u8 *tiles[2];
    vf acc[FOUR_QUERIES][2];
    UNROLL for (int k = 0; k < 2; k++) tiles[k] = keys + at_tile(at + k * W) * tile_bytes;
    UNROLL for (int i = 0; i < count; i++) acc[i][0] = acc[i][1] = (vf){};
    for (int g = 0; g < dim / 32; g++) {
      FourSum sums[FOUR_QUERIES][2];
      UNROLL for (int i = 0; i < count; i++) sums[i][0] = sums[i][1] = (FourSum){};
      UNROLL for (int r = 0; r < 4; r++) {
        vu low[2], high[2];
        UNROLL for (int k = 0; k < 2; k++) {
          const vu both = LOAD(vu, tiles[k] + at_place(at + k * W) * 4 + r * 64);
          low[k] = both & 15, high[k] = both >> 4;
          __builtin_prefetch(next, 0, 2);
          next += 4 * W;
        }
        UNROLL for (int i = 0; i < count; i++) UNROLL for (int h = 0; h < 2; h++) {
          const vs q = splat_word(queries[i].q + g * 32 + r * 4 + 16 * h);
          UNROLL for (int k = 0; k < 2; k++) {
            sums[i][k] = four_add(sums[i][k], h ? high[k] : low[k], q);
            HOLD(sums[i][k]);
          }
        }
      }
      UNROLL for (int k = 0; k < 2; k++, tiles[k - 1] += FOUR_TILE) {
        const vf scale = halves((const u16 *)(tiles[k] + FOUR_SCALES) + at_place(at + k * W));
        UNROLL for (int i = 0; i < count; i++)
          acc[i][k] = FMA(CONVERT(2 * four_total(sums[i][k]) - queries[i].less[g], vf), scale * queries[i].scales[g], acc[i][k]);
      }
    }
    UNROLL for (int i = 0; i < count; i++) UNROLL for (int k = 0; k < 2; k++) STORE(&scores[i][at - span.block + k * W], acc[i][k]);
  }
}

typedef struct {
  f32 scale;
  i32 less;
  i8 shares[BLOCK];
} FourShares;
// Writes the shares of all queries times the scales, as bytes. The queries are rounded together, because the remainder
// of a position is known only after 16 cycles. most: the largest share of each query
INL void four_shares(int count, const f32 *factors, f32 factor, Span span, const f32 (*scores)[BLOCK], const f32 *most, FourShares *to) {
  const int begin = span.first / 16 * 16 - span.block, end = (span.end + 15) / 16 * 16 - span.block;
  vf left[FOUR_QUERIES][16 / W];
  vi total[FOUR_QUERIES];
  f32 inverse[FOUR_QUERIES];
  for (int i = 0; i < count; i++) inverse[i] = inverse_share(factor * most[i], SHARE_MAX, &to[i].scale);
  UNROLL for (int i = 0; i < count; i++) {
    total[i] = (vi){};
    UNROLL for (int k = 0; k < 16 / W; k++) left[i][k] = (vf){};
  }
  for (int at = begin; at < end; at += 16) UNROLL for (int k = 0; k < 16 / W; k++) {
    const vf f = LOAD(vf, factors + at + k * W);
    UNROLL for (int i = 0; i < count; i++) {
      const vf x = FMA(LOAD(vf, &scores[i][at + k * W]), f * splat(inverse[i]), left[i][k]);
      const vi n = to_integers(x);
      left[i][k] = x - CONVERT(n, vf);
      STORE(to[i].shares + at + k * W, CONVERT(n, small));
      total[i] += n;
    }
  }
  vi each[FOUR_QUERIES];
  UNROLL for (int i = 0; i < count; i++) each[i] = total[i];
  for (int i = 0; i < count; i++) to[i].less = to[i].scale == to[i].scale ? FOUR_LESS * sum_int(each[i]) : 0;
}

INL void four_sums(int count, const u8 *values, int filled, Span span, const u8 *next, const f32 (*scores)[BLOCK], f32 (*sums)[HEAD_MAX]) {
  const i64 tile_bytes = 16 * kv_bytes(KV_Q4_0, filled);
  const int begin = span.first / 16 * 16;
  f32 most[FOUR_QUERIES];
  for (int i = 0; i < count; i++) most[i] = largest_between(scores[i], begin - span.block, (span.end + 15) / 16 * 16 - span.block);
  for (int g = 0; g < filled; g += 32, values += FOUR_TILE) {
    f32 factors[BLOCK];
    FourShares of[FOUR_QUERIES];
    const f32 largest = scale_factors(KV_Q4_0, values + FOUR_SCALES, tile_bytes, span, factors);
    four_shares(count, factors, largest, span, scores, most, of);
    for (int lane = 0; lane < 16; lane += W) {
      vi all[FOUR_QUERIES][2];
      UNROLL for (int i = 0; i < count; i++) all[i][0] = all[i][1] = (vi){};
      for (int at = begin; at < span.end;) {
        const int end = NARROW ? MIN(at + 4 * FOUR_STEPS, span.end) : span.end;
        FourSum acc[FOUR_QUERIES][2];
        UNROLL for (int i = 0; i < count; i++) acc[i][0] = acc[i][1] = (FourSum){};
        for (; at < end; at += 4) {
          const u8 *from = values + at_tile(at) * tile_bytes + at_place(at) * 16 + lane * 4;
          const vu both = LOAD(vu, from);
          __builtin_prefetch(next, 0, 2);
          next += 4 * W;
          UNROLL for (int i = 0; i < count; i++) {
            const vs share = splat_word(&of[i].shares[at - span.block]);
            acc[i][0] = four_add(acc[i][0], both & 15, share);
            acc[i][1] = four_add(acc[i][1], both >> 4, share);
          }
        }
        UNROLL for (int i = 0; i < count; i++) UNROLL for (int h = 0; h < 2; h++) all[i][h] += four_total(acc[i][h]);
      }
      for (int i = 0; i < count; i++) for (int h = 0; h < 2; h++) {
        f32 *to = &sums[i][g + 16 * h + lane];
        STORE(to, FMA(CONVERT(2 * all[i][h] - of[i].less, vf), splat(of[i].scale), LOAD(vf, to)));
      }
    }
  }
}
#define DEFINE(name, count) \
  NOINL void four_scores_##name(const u8 *keys, int dim, const FourQuery *queries, Span span, const u8 *next, f32 (*scores)[BLOCK]) { \
    four_scores(count, keys, dim, queries, span, next, scores); \
  } \
  NOINL void four_sums_##name(const u8 *values, int filled, Span span, const u8 *next, const f32 (*scores)[BLOCK], f32 (*sums)[HEAD_MAX]) { \
    four_sums(count, values, filled, span, next, scores, sums); \
  }
DEFINE(one, 1)
DEFINE(some, FOUR_QUERIES)
#undef DEFINE

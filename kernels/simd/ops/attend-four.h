// attend-four: scores and sums of values over a cache of 4 bits, by products of bytes.
//
// Queries are rounded to 8 bits for each 32 values. Shares times the scales of values are rounded to 7 bits for each 32
// values and block of positions, and what rounding takes from a position is given to a later one: many small shares
// next to a large one keep their sum. Integer sums are exact.
#pragma once
#include "kv.h"

#define BLOCK 256
#define FOUR_QUERIES (W == 16 || NARROW ? 4 : 2)
#define SHARE_MAX 126.4f // plus the remainder of an earlier share: at most 127

// Positions first … end of the block that begins at `block`; scores are computed for positions below `last`.
typedef struct {
  int block, first, end, last;
} Span;

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
// The tile of a position, and the position in it. Unsigned, because -Oz divides signed numbers.
INL i64 at_tile(u32 at) { return at / 16; }
INL i64 at_place(u32 at) { return at % 16; }
INL vs splat_word(const void *p) { return (vs)((vi){} + LOAD(i32, p)); }

// Prefetches `next`, one cache line per step.
INL void four_scores(int count, const u8 *keys, int dim, const FourQuery *queries, Span span, const u8 *next, f32 (*scores)[BLOCK]) {
  const i64 tile_bytes = 16 * kv_bytes(KV_Q4_0, dim);
  for (int at = span.first; at < span.last; at += W) {
    const u8 *tile = keys + at_tile(at) * tile_bytes;
    vf acc[FOUR_QUERIES];
    UNROLL for (int i = 0; i < count; i++) acc[i] = (vf){};
    for (int g = 0; g < dim / 32; g++, tile += FOUR_TILE) {
      const u8 *from = tile + at_place(at) * 4;
      FourSum low[FOUR_QUERIES], high[FOUR_QUERIES];
      UNROLL for (int i = 0; i < count; i++) low[i] = high[i] = (FourSum){};
      UNROLL for (int r = 0; r < 4; r++) {
        const vu both = LOAD(vu, from + r * 64);
        __builtin_prefetch(next, 0, 2);
        next += 4 * W;
        UNROLL for (int i = 0; i < count; i++) {
          const i8 *q = queries[i].q + g * 32 + r * 4;
          low[i] = four_add(low[i], both & 15, splat_word(q));
          high[i] = four_add(high[i], both >> 4, splat_word(q + 16));
        }
      }
      const vf scale = halves((const u16 *)(tile + FOUR_SCALES) + at_place(at));
      UNROLL for (int i = 0; i < count; i++)
        acc[i] = FMA(CONVERT(2 * four_total(low[i] + high[i]) - queries[i].less[g], vf), scale * queries[i].scales[g], acc[i]);
    }
    UNROLL for (int i = 0; i < count; i++) STORE(&scores[i][at - span.block], acc[i]);
  }
}

INL i32 largest_bits(const f32 *x, int begin, int end) {
  vi most = {};
  for (int at = begin; at < end; at += W) most = __builtin_elementwise_max(most, LOAD(vi, x + at) & 0x7fffffff);
  return largest_int(most);
}
// Scales of 32 values as floats; 0 for positions outside of the span, where other data may lie. Returns the largest
// scale.
INL f32 four_factors(const u8 *values, i64 tile_bytes, Span span, f32 *to) {
  const int begin = span.first / 16 * 16 - span.block, end = (span.end + 15) / 16 * 16 - span.block;
  for (int at = begin; at < end; at += W)
    STORE(to + at, halves((const u16 *)(values + at_tile(span.block + at) * tile_bytes + FOUR_SCALES) + at_place(at)));
  for (int at = begin; at < span.first - span.block; at++) to[at] = 0;
  for (int at = span.end - span.block; at < end; at++) to[at] = 0;
  const i32 bits = largest_bits(to, begin, end);
  return LOAD(f32, &bits);
}
// Number of queries whose shares are rounded together: the remainder of a position is known only after 16 cycles.
#define FOUR_AT_ONCE (W == 8 ? 2 : FOUR_QUERIES)
typedef struct {
  f32 scale;
  i32 less;
  i8 shares[BLOCK];
} FourShares;
// Multiplies the shares of some queries by scales, and rounds them to bytes. most: bits of the largest share of each
// query
NOINL void four_shares(int count, const f32 *factors, Span span, const f32 (*scores)[BLOCK], f32 factor, const i32 *most, FourShares *to) {
  const int begin = span.first / 16 * 16 - span.block, end = (span.end + 15) / 16 * 16 - span.block;
  vf left[FOUR_AT_ONCE][16 / W], inverse[FOUR_AT_ONCE];
  vi total[FOUR_AT_ONCE], is_number[FOUR_AT_ONCE];
  UNROLL for (int i = 0; i < FOUR_AT_ONCE; i++) if (i < count) {
    const f32 largest = factor * LOAD(f32, most + i);
    const int is = largest - largest == 0;
    to[i].scale = is ? largest / SHARE_MAX : __builtin_nanf("");
    is_number[i] = (vi){} - is;
    inverse[i] = splat(is && largest > SCALED_MIN ? SHARE_MAX / largest : 0);
    total[i] = (vi){};
    UNROLL for (int k = 0; k < 16 / W; k++) left[i][k] = (vf){};
  }
  for (int at = begin; at < end; at += 16) UNROLL for (int k = 0; k < 16 / W; k++) {
    const vf f = LOAD(vf, factors + at + k * W);
    UNROLL for (int i = 0; i < FOUR_AT_ONCE; i++) if (i < count) {
      const vf sum = FMA(LOAD(vf, &scores[i][at + k * W]), f * inverse[i], left[i][k]), x = (vf)((vi)sum & is_number[i]);
      const vi n = to_integers(x);
      left[i][k] = x - CONVERT(n, vf);
      STORE(to[i].shares + at + k * W, CONVERT(n, small));
      total[i] += n;
    }
  }
  UNROLL for (int i = 0; i < FOUR_AT_ONCE; i++) if (i < count) to[i].less = FOUR_LESS * sum_int(total[i]);
}

INL void four_sums(int count, const u8 *values, int filled, Span span, const u8 *next, const f32 (*scores)[BLOCK], f32 (*sums)[HEAD_MAX]) {
  const i64 tile_bytes = 16 * kv_bytes(KV_Q4_0, filled);
  const int begin = span.first / 16 * 16;
  i32 most[FOUR_QUERIES];
  for (int i = 0; i < count; i++)
    most[i] = largest_bits(scores[i], begin - span.block, (span.end + 15) / 16 * 16 - span.block);
  for (int g = 0; g < filled; g += 32, values += FOUR_TILE) {
    f32 factors[BLOCK];
    FourShares of[FOUR_QUERIES];
    const f32 largest = four_factors(values, tile_bytes, span, factors);
    for (int i = 0; i < count; i += FOUR_AT_ONCE)
      four_shares(MIN(count, FOUR_AT_ONCE), factors, span, scores + i, largest, most + i, of + i);
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
      UNROLL for (int i = 0; i < count; i++) UNROLL for (int h = 0; h < 2; h++) {
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

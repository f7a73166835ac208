// attend-words: attention of prompts with products of 16-bit integers, of which a register holds twice as many as of
// floats.
//
// Every query, key and value is divided by its own scale; a position's value scale is a power of two, because shares
// are exponentials to base 2, where such a scale is a term of the exponent. Integer sums are exact, and blocks begin at
// multiples of SPAN, so a row's bits do not depend on other rows.
#pragma once
#include "../words.h"
#include "kv.h"

#define SPAN 128 // positions whose products add up in 32 bits: 128 · 4096 · 4095 < 2^31
#define WORD_MAX 4095
#define VALUE_MAX 4095.5f // limit of values before rounding
#define LOG2_SHARE_MAX 12 // a power of two, which vexp2 gives exactly
#define SWEEP 512 // queries per conversion of keys and values to words
#define TILE_QUERIES 4
#if W == 16
#define WORD_REGS 4
#define GROUP 8 // queries whose shares are computed together
#else
#define WORD_REGS 2
#define GROUP 4
#endif
#define LANES (WORD_REGS * W) // positions whose scores are computed together
#define PACK (2 * W) // positions whose shares are packed together
#define LOG2_E 1.44269504f
#define NO_NUMBER __builtin_nanf("")

typedef struct {
  f32 key_scales[SPAN];
  f32 powers[SPAN]; // exponents of two that divide the values
  f32 factors[SPAN]; // 2 to the power of −powers
  i16 *keys; // (SPAN / LANES, pairs, LANES, 2)
  i16 *values; // (SPAN / 2, wide, 2), pairs in the order of pack_words
  i16 *queries; // (SWEEP, pairs, 2)
  f32 *sums; // (SWEEP, wide)
  int pairs; // pairs of values in a head
  int wide; // values padded to whole registers
  int vnni; // 1: uses AVX-VNNI
  f32 word_max; // limit of queries and keys: dim · word_max² < 2^31
} Words;
typedef struct {
  f32 factor; // converts sums to scores
  f32 most, total; // so far; scores are to base 2
} Running;

INL int word_width(int filled) { return (filled + LANES - 1) / LANES * LANES; }

// Rounds a · x and b · y to the low and high halves of words.
INL vi word_pair(vf a, vf x, vf b, vf y) {
  vi low = (vi)FMA(a, x, splat(ROUNDING)), high = (vi)FMA(b, y, splat(ROUNDING));
  return (low & 0xffff) | (high << 16);
}
INL f32 tree_largest(vf a) {
  union { vf v; f32x4 quarters[W / 4]; } all = {a};
  f32x4 v = all.quarters[0];
#define LARGER(x, y) (f32x4)(((i32x4)x & (i32x4)(x > y)) | ((i32x4)y & ~(i32x4)(x > y)))
  UNROLL for (int i = 1; i < W / 4; i++) v = LARGER(v, all.quarters[i]);
  f32x4 w = SHUFFLE(v, v, 2, 3, 0, 1);
  v = LARGER(v, w);
  return v[0] > v[1] ? v[0] : v[1];
#undef LARGER
}

// 2^x within 1.1e-4, 2^0 exactly, and 0 below 2^−126. NaN stays NaN.
INL vf vexp2(vf x) {
#if W == 16
  const vf r = fraction(x);
  vf p = FMA(r, splat(7.706704207e-2f), splat(2.276449911e-1f));
  p = FMA(p, r, splat(6.951167864e-1f));
  return times_power(FMA(p, r, splat(1.0f)), x);
#else
  vf z = x + ROUNDING;
  vf r = x - (z - ROUNDING);
  vf p = FMA(r, splat(5.500893106e-2f), splat(2.422109594e-1f));
  p = FMA(p, r, splat(6.932829271e-1f));
  p = FMA(p, r, splat(1.0f));
  vi value = (vi)p + ((vi)z << 23);
  return (vf)(value & ~(x <= -126.0f));
#endif
}

// For each query of a tile, LANES sums of products of x, (steps, x_step), with its pairs of y. to: (TILE_QUERIES,
// to_step)
INL void multiply_words(const i16 *x, i64 x_step, const i16 *y, i64 y_step, int steps, i32 *to, i64 to_step) {
  vi acc[TILE_QUERIES][WORD_REGS];
  UNROLL for (int i = 0; i < TILE_QUERIES; i++) UNROLL for (int r = 0; r < WORD_REGS; r++) acc[i][r] = (vi){};
  for (int s = 0; s < steps; s++) {
    vh v[WORD_REGS];
    UNROLL for (int r = 0; r < WORD_REGS; r++) v[r] = LOAD(vh, x + s * x_step + r * 2 * W);
    UNROLL for (int i = 0; i < TILE_QUERIES; i++) {
      const vh pair = (vh)((vi){} + LOAD(i32, y + i * y_step + 2 * s));
      UNROLL for (int r = 0; r < WORD_REGS; r++) acc[i][r] = dot_words(acc[i][r], v[r], pair);
    }
  }
  UNROLL for (int i = 0; i < TILE_QUERIES; i++, to += to_step)
    UNROLL for (int r = 0; r < WORD_REGS; r++) STORE(to + r * W, acc[i][r]);
}

#define DEFINE(name) \
  void name(const i16 *x, i64 x_step, const i16 *y, i64 y_step, int steps, i32 *to, i64 to_step) { \
    multiply_words(x, x_step, y, y_step, steps, to, to_step); \
  }
NOINL DEFINE(word_products)
#if AVXVNNI
WITH_AVXVNNI NOINL DEFINE(word_products_vnni) // a step is one instruction: the compiler finds it
#define WORD_PRODUCTS_OF(w) ((w)->vnni ? word_products_vnni : word_products)
#else
#define WORD_PRODUCTS_OF(w) word_products
#endif
#undef DEFINE

// Keys, (dim, 16), and values, (16, filled), of 16 positions as floats; prefetches the ones SPAN positions later.
INL void kv_floats(int type, const u8 *keys, int dim, const u8 *values, int filled, i64 at, f32 *k, f32 *v) {
  const u8 *next = keys + (at + SPAN) * kv_bytes(type, dim);
  for (int d = 0; d < dim; d++) {
    __builtin_prefetch(next + (i64)d * 16 * unit_bytes(type));
    for (int i = 0; i < 16; i += W) STORE(k + d * 16 + i, load_keys(type, keys, dim, at + i, d));
  }
  next = values + (at + SPAN) * kv_bytes(type, filled);
  for (i64 i = 0; i < 16 * kv_bytes(type, filled); i += 64) __builtin_prefetch(next + i);
  for (int i = 0; i < 16; i++)
    for (int d = 0; d < filled; d += W) STORE(v + i * filled + d, load_values(type, values, filled, at + i, d));
}
#define DEFINE(name, type) \
  NOINL void floats_##name(const u8 *keys, int dim, const u8 *values, int filled, i64 at, f32 *k, f32 *v) { \
    kv_floats(type, keys, dim, values, filled, at, k, v); \
  }
DEFINE(f16, KV_F16)
DEFINE(q8_0, KV_Q8_0)
DEFINE(q4_0, KV_Q4_0)
#undef DEFINE

// Converts keys of the 16 positions from `at` of a block.
NOINL void key_words(const f32 *k, int dim, int at, Words *w) {
  for (const int end = at + 16; at < end; at += W, k += W) {
    vi most = {};
    for (int d = 0; d < dim; d++) most = __builtin_elementwise_max(most, LOAD(vi, k + d * 16) & 0x7fffffff);
    vi number = most < 0x7f800000, some = (vf)most > SCALED_MIN;
    vf scale = (vf)((((vi)((vf)most / w->word_max)) & number) | ((vi)splat(NO_NUMBER) & ~number));
    vf inverse = (vf)((vi)(w->word_max / (vf)most) & some);
    STORE(w->key_scales + at, scale);
    i16 *to = w->keys + ((i64)(at / LANES * LANES) * w->pairs + at % LANES) * 2;
    for (int d = 0; d < dim; d += 2, to += LANES * 2)
      STORE(to, word_pair(LOAD(vf, k + d * 16), inverse, d + 1 < dim ? LOAD(vf, k + d * 16 + 16) : (vf){}, inverse));
  }
}

INL vi most_of(const f32 *x, int n) {
  vi most = {};
  for (int d = 0; d < n; d += W) most = __builtin_elementwise_max(most, LOAD(vi, x + d) & 0x7fffffff);
  return most;
}
#define POWER_MIN -40
#define POWER_MAX 100
// Converts values of 16 positions in the same way.
NOINL void value_words(const f32 *v, int filled, int at, Words *w) {
  for (const int end = at + 16; at < end; at += 2, v += 2 * filled) {
    for (int i = 0; i < 2; i++) {
      const i32 exponent = (largest_int(most_of(v + i * filled, filled)) >> 23) - 126;
      const i32 power = MAX(MIN(exponent, POWER_MAX), POWER_MIN), bits = (127 - power) << 23;
      w->powers[at + i] = exponent > POWER_MAX ? NO_NUMBER : power;
      w->factors[at + i] = LOAD(f32, &bits); // a number, for rows that do not see the position
    }
    const vf even = splat(w->factors[at] * VALUE_MAX), odd = splat(w->factors[at + 1] * VALUE_MAX);
    const int pair = at % PACK / 2, half = W / 2; // the first quarter of one register precedes that of the other
    const int place = pair % half / 2 * 4 + pair / half * 2 + pair % 2;
    i16 *to = w->values + (i64)(at / PACK * W + place) * w->wide * 2;
    for (int d = 0; d < filled; d += W) STORE(to + 2 * d, word_pair(LOAD(vf, v + d), even, LOAD(vf, v + filled + d), odd));
  }
}

// Begins the running maximum of scores times `factor`, the sum of shares, of which the largest is `one`, and the sums of
// values times `unit`: with the sink of a query, and with its own key and value. These need scores to base 2.
NOINL void begin_query(const Attend *op, const Query *q, f32 factor, f32 one, f32 unit, f32 *most, f32 *total, f32 *sums, int wide) {
  *most = q->sink ? *q->sink * factor : -__builtin_inff();
  *total = q->sink ? one : 0;
  for (int d = 0; d < wide; d += W) STORE(sums + d, (vf){});
  if (!q->own_key) return;
  vf acc = {};
  for (int d = 0; d < op->headDim; d += W) acc = FMA(LOAD(vf, q->q + d), LOAD(vf, q->own_key + d), acc);
  const f32 score = bend(op, q, q->at, splat(sum(acc) * op->scale))[0] * factor, now = score > *most ? score : *most;
  const f32 share = one * vexp2(splat(score - now))[0];
  *total = *total * vexp2(splat(*most - now))[0] + share;
  *most = now;
  for (int d = 0; d < op->valueDim; d += W) STORE(sums + d, LOAD(vf, q->own_value + d) * (share * unit));
}

NOINL void query_words(const Attend *op, const Query *q, Words *w, i16 *to, Running *run) {
  const int dim = op->headDim;
  vi all = {};
  for (int d = 0; d < dim; d += W) all = __builtin_elementwise_max(all, (vi)load_some(q->q + d, dim - d) & 0x7fffffff);
  const i32 bits = largest_int(all);
  const f32 most = LOAD(f32, &bits), scale = bits < 0x7f800000 ? most / w->word_max : NO_NUMBER;
  const vf inverse = splat(most > SCALED_MIN ? w->word_max / most : 0);
  for (int d = 0; d < 2 * w->pairs; d += W) store_words(to + d, d < dim ? load_some(q->q + d, dim - d) : (vf){}, inverse);
  run->factor = scale * op->scale;
}

// The work of a group of queries on positions begin … end of the block at `block`, multiples of PACK.
typedef struct {
  i32 sums[GROUP][SPAN]; // sums of key products, then scores as f32, then sums of products of LANES values
  i16 shares[GROUP][SPAN];
  f32 factors[2][GROUP]; // factors of the sums so far, and of this block's
  int block, begin, end;
} Tile;

// Keys times queries.
INL void tile_scores(const Words *w, const i16 *queries, Tile *tile) {
  const int step = 2 * w->pairs;
  for (int at = tile->begin / LANES * LANES; at < tile->end; at += LANES)
    for (int i = 0; i < GROUP; i += TILE_QUERIES)
      WORD_PRODUCTS_OF(w)(w->keys + (i64)at * step, LANES * 2, queries + (i64)i * step, step, w->pairs, &tile->sums[i][at], SPAN);
}

// Scores to base 2, plus the exponents of values; the maximum per query.
INL void scale_scores(const Words *w, const Running *run, Tile *tile, f32 *most) {
  vf all[GROUP];
  UNROLL for (int i = 0; i < GROUP; i++) all[i] = splat(-__builtin_inff());
  for (int at = tile->begin; at < tile->end; at += W) {
    const vf scale = LOAD(vf, w->key_scales + at) * LOG2_E, power = LOAD(vf, w->powers + at);
    UNROLL for (int i = 0; i < GROUP; i++) {
      vf s = FMA(CONVERT(LOAD(vi, &tile->sums[i][at]), vf), scale * run[i].factor, power);
      all[i] = vmax(all[i], s);
      STORE(&tile->sums[i][at], s);
    }
  }
  for (int i = 0; i < GROUP; i++) most[i] = tree_largest(all[i]);
}
// The same for one query with masked positions, ALiBi or biases.
NOINL f32 bend_scores(const Attend *op, const Words *w, const Query *q, const Tile *tile, f32 factor, i32 *sums) {
  vf all = splat(-__builtin_inff());
  for (int at = tile->begin; at < tile->end; at += W) {
    vf scale = LOAD(vf, w->key_scales + at), power = LOAD(vf, w->powers + at), s = CONVERT(LOAD(vi, sums + at), vf);
    if (op->softCap > 0 || q->slope || q->biases) {
      s = FMA(bend(op, q, tile->block + at, s * (scale * factor)), splat(LOG2_E), power);
    } else s = FMA(s, scale * LOG2_E * factor, power);
    s = mask_scores(s, tile->block + at, q->from, q->to);
    all = vmax(all, s);
    STORE(sums + at, s);
  }
  return tree_largest(all);
}

// Converts scores to shares, as words, and rescales the sums so far.
NOINL void tile_shares(const Attend *op, const Words *w, const Query *q, Running *run, Tile *tile) {
  const int begin = tile->begin, end = tile->end;
  int plain = !(op->softCap > 0) && !op->slopes && !op->biases;
  for (int i = 0; i < GROUP; i++)
    plain &= q[i].from <= tile->block + begin && q[i].to >= tile->block + end;
  f32 most[GROUP], less[GROUP], change[2 * GROUP];
  if (plain) scale_scores(w, run, tile, most);
  else for (int i = 0; i < GROUP; i++) most[i] = bend_scores(op, w, q + i, tile, run[i].factor, tile->sums[i]);
  for (int i = 0; i < GROUP; i++) {
    const int sees = MAX(q[i].from, tile->block + begin) < MIN(q[i].to, tile->block + end);
    const f32 now = most[i] > run[i].most ? most[i] : run[i].most;
    less[i] = sees ? most[i] - LOG2_SHARE_MAX : 0;
    change[i] = sees ? run[i].most - now : 0;
    change[GROUP + i] = sees ? most[i] - now : -__builtin_inff();
    if (sees) run[i].most = now;
  }
  for (int i = 0; i < 2 * GROUP; i += W) {
    vf by = vexp2(load_some(change + i, 2 * GROUP - i));
    store_some(tile->factors[0] + i, by, 2 * GROUP - i);
  }
  vf all[GROUP];
  UNROLL for (int i = 0; i < GROUP; i++) all[i] = (vf){};
  for (int at = begin; at < end; at += PACK) {
    const vf low = LOAD(vf, w->factors + at), high = LOAD(vf, w->factors + at + W);
    UNROLL for (int i = 0; i < GROUP; i++) {
      const vf a = vexp2(LOAD(vf, &tile->sums[i][at]) - less[i]), b = vexp2(LOAD(vf, &tile->sums[i][at + W]) - less[i]);
      all[i] = FMA(b, high, FMA(a, low, all[i]));
      STORE(&tile->shares[i][at], pack_words(to_integers(a), to_integers(b)));
    }
  }
  for (int i = 0; i < GROUP; i++)
    run[i].total = run[i].total * tile->factors[0][i] + sum(all[i]) * tile->factors[1][i];
}

NOINL void attend_tile(const Attend *op, const Words *w, const Query *q, Running *run, int first, Tile *tile) {
  tile_scores(w, w->queries + (i64)first * w->pairs * 2, tile);
  tile_shares(op, w, q, run, tile);
  const int steps = (tile->end - tile->begin) / 2;
  for (int d = 0; d < w->wide; d += LANES) {
    const i16 *values = w->values + ((i64)tile->begin / 2 * w->wide + d) * 2;
    for (int i = 0; i < GROUP; i += TILE_QUERIES)
      WORD_PRODUCTS_OF(w)(values, 2 * w->wide, &tile->shares[i][tile->begin], SPAN, steps, tile->sums[i], SPAN);
    f32 *sums = w->sums + (i64)first * w->wide + d;
    for (int i = 0; i < GROUP; i++, sums += w->wide) {
      const vf keep = splat(tile->factors[0][i]), add = splat(tile->factors[1][i]);
      UNROLL for (int r = 0; r < LANES; r += W)
        STORE(sums + r, FMA(CONVERT(LOAD(vi, tile->sums[i] + r), vf), add, LOAD(vf, sums + r) * keep));
    }
  }
}

#define QUERY_FLOATS 16 // size of a Query
_Static_assert(sizeof(Query) <= 4 * QUERY_FLOATS, "a query has room");
// Scratch of a thread, which begins with the queries; lower-attention.ts computes the same.
INL i64 word_bytes(int dim, int value_dim) {
  const i64 wide = (value_dim + 63) / 64 * 64, pairs = (dim + 1) / 2;
  return 4 * (SWEEP * (QUERY_FLOATS + wide + pairs) + SPAN * (pairs + wide / 2) + 16 * (dim + wide + 1));
}

// At most SWEEP queries of one KV head, with room for whole tiles.
NOINL void attend_words(Thread *t, const Attend *op, const u8 *keys, const u8 *values, Query *queries, int there) {
  const int filled = FILLED_HEAD(op->valueDim), filled_up = (there + GROUP - 1) / GROUP * GROUP;
  Words w __attribute__((aligned(64)));
  Running running[SWEEP];
  Tile tile __attribute__((aligned(64)));
  w.pairs = (op->headDim + 1) / 2;
  w.vnni = t->p.features & FEATURE_AVXVNNI;
  w.wide = word_width(filled);
  w.word_max = MIN(WORD_MAX, 46340 * inverse_root(2 * w.pairs) - 1);
  for (int i = 0; i < SPAN; i += W) STORE(w.factors + i, (vf){});
  w.sums = (f32 *)t->scratch + SWEEP * QUERY_FLOATS;
  w.keys = (i16 *)(w.sums + (i64)SWEEP * w.wide);
  w.values = w.keys + (i64)SPAN * w.pairs * 2;
  f32 *k = (f32 *)(w.values + (i64)SPAN * w.wide), *v = k + (i64)op->headDim * 16;
  w.queries = (i16 *)(v + (i64)filled * 16);
  int from = queries[0].from, to = queries[0].to;
  for (int i = 0; i < filled_up; i++) {
    if (i >= there) queries[i] = queries[0];
    from = MIN(from, queries[i].from);
    to = MAX(to, queries[i].to);
    Running *run = &running[i];
    query_words(op, &queries[i], &w, w.queries + (i64)i * w.pairs * 2, run);
    begin_query(op, &queries[i], LOG2_E, 1 << LOG2_SHARE_MAX, VALUE_MAX, &run->most, &run->total, w.sums + (i64)i * w.wide, w.wide);
  }
  if (filled < w.wide) for (i64 i = 0; i < SPAN * w.wide / 2; i += W) STORE((f32 *)w.values + i, (vf){});
  for (int block = from / SPAN * SPAN; block < to; block += SPAN) {
    const int last = MIN(SPAN, (to - block + 15) / 16 * 16);
    for (int at = 0; at < last; at += 16) {
      (op->type == KV_F16 ? floats_f16 : op->type == KV_Q8_0 ? floats_q8_0 : floats_q4_0)(keys, op->headDim, values, filled, block + at, k, v);
      key_words(k, op->headDim, at, &w);
      value_words(v, filled, at, &w);
    }
    for (int i = 0; i < filled_up; i += GROUP) {
      tile.block = block, tile.begin = SPAN, tile.end = 0;
      for (int k = i; k < i + GROUP; k++) {
        tile.begin = MIN(tile.begin, MAX(queries[k].from - block, 0));
        tile.end = MAX(tile.end, MIN(queries[k].to - block, SPAN));
      }
      tile.begin = tile.begin / PACK * PACK;
      tile.end = (tile.end + PACK - 1) / PACK * PACK;
      if (tile.begin < tile.end) attend_tile(op, &w, &queries[i], &running[i], i, &tile);
    }
  }
  for (int i = 0; i < there; i++) {
    const int none = running[i].total == 0 && queries[i].to <= queries[i].from; // as in attend_queries
    const f32 inverse = none ? 0 : 1 / VALUE_MAX / running[i].total;
    const f32 *sums = w.sums + (i64)i * w.wide;
    for (int d = 0; d < op->valueDim; d += W)
      store_some(queries[i].out + d, LOAD(vf, sums + d) * inverse, op->valueDim - d);
  }
}

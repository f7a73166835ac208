// attend: the KV cache and attention over it.
//
// Keys lie in tiles of 16 positions, (positions/16, headDim, 16), so that scores need no sum across a register; values
// as (positions, headDim filled up to 16). In 8 bits groups of 32 values of a position share a scale: of keys those lie
// behind each tile, (groups, 16), of values behind each position. Scores are made in blocks of positions with a running maximum
// (arXiv:2205.14135); blocks begin at multiples of BLOCK, so a row's bits do not depend on the rows that share its pass.
#pragma once
#include "../functions.h"
#include "../pass.h"

#define BLOCK 256
#define HEAD_MAX 1024
#if W == 16
#define QUERIES 8
#define POSITIONS 32 // of scores at once
#define FEW_QUERIES 4
#else
#define QUERIES 4
#define POSITIONS 16
#define FEW_QUERIES 1
#endif
#define VALUE_REGS_MAX 4
#define FILLED_HEAD(headDim) (((headDim) + 15) / 16 * 16)
#define HALF_MAX 65504.0f

#define KV_GROUP 32
typedef i8 small VEC(W);
// Bytes of `n` values of a position.
INL i64 kv_bytes(int type, i64 n) {
  return type == KV_F32 ? 4 * n : type == KV_F16 ? 2 * n : n + (n + KV_GROUP - 1) / KV_GROUP * 4;
}
// Value d of the keys of W positions from `at` on; `base` is where those of position 0 lie.
INL vf load_keys(int type, const u8 *base, int dim, i64 at, int d) {
  const u8 *tile = base + at / 16 * 16 * kv_bytes(type, dim);
  const i64 i = (i64)d * 16 + at % 16;
  if (type == KV_F32) return LOAD(vf, tile + 4 * i);
  if (type == KV_F16) return halves((const u16 *)tile + i);
  return CONVERT(LOAD(small, tile + i), vf) * LOAD(vf, tile + (i64)dim * 16 + (d / KV_GROUP * 16 + at % 16) * 4);
}
// W values from d on of a position's `filled`.
INL vf load_values(int type, const u8 *base, int filled, i64 at, int d) {
  const u8 *row = base + at * kv_bytes(type, filled);
  if (type == KV_F32) return LOAD(vf, row + 4 * d);
  if (type == KV_F16) return halves((const u16 *)row + d);
  return CONVERT(LOAD(small, row + d), vf) * splat(LOAD(f32, row + filled + d / KV_GROUP * 4));
}
INL vf kept_half(vf v) { return vmax(splat(-HALF_MAX), vmin(splat(HALF_MAX), v)); } // the second where it is no number
#define SCALED_MIN 1.5e-36f // below, a 127th has too few bits to divide by
// What makes 8 bits of some values, 0 where they are too small; of those that are no numbers the scale is none either.
INL f32 scale_of(const f32 *x, int n) {
  f32 most = 0;
  for (int i = 0; i < n; i++) {
    f32 v = x[i] < 0 ? -x[i] : x[i];
    if (!(v <= most)) most = v;
    if (v != v) return v;
  }
  return most < SCALED_MIN ? 0 : most / 127 + most * 0;
}
INL i8 small_of(f32 x, f32 scale) {
  f32 v = scale > 0 ? x / scale : 0;
  return (i8)(v < 0 ? v - 0.5f : v + 0.5f);
}
// A position's values: in 16 places, `step` apart, from `to` on, and their scales.
INL void write_kv(int type, u8 *to, u8 *scales, i64 step, const f32 *x, int n) {
  for (int first = 0; first < n; first += KV_GROUP) {
    const int end = MIN(first + KV_GROUP, n);
    const f32 scale = type == KV_Q8_0 ? scale_of(x + first, end - first) : 0;
    if (type == KV_Q8_0) STORE(scales + first / KV_GROUP * step * 4, scale);
    for (int i = first; i < end; i += W) {
      u16 halves[W];
      if (type == KV_F16) to_halves(halves, kept_half(load_some(x + i, end - i)));
      for (int k = i; k < MIN(i + W, end); k++) {
        if (type == KV_F32) STORE(to + k * step * 4, x[k]);
        else if (type == KV_F16) STORE(to + k * step * 2, halves[k - i]);
        else to[k * step] = (u8)small_of(x[k], scale);
      }
    }
  }
}
INL void read_kv(int type, const u8 *from, const u8 *scales, i64 step, f32 *x, int n) {
  for (int i = 0; i < n; i++) {
    if (type == KV_F32) x[i] = LOAD(f32, from + i * step * 4);
    else if (type == KV_F16) x[i] = half(LOAD(u16, from + i * step * 2));
    else x[i] = (f32)(i8)from[i * step] * LOAD(f32, scales + i / KV_GROUP * step * 4);
  }
}
INL i64 unit_bytes(int type) { return type == KV_F32 ? 4 : type == KV_F16 ? 2 : 1; }
// Where a position's key begins, and its scales.
INL u8 *key_place(int type, u8 *base, int dim, i64 at) {
  return base + at / 16 * 16 * kv_bytes(type, dim) + at % 16 * unit_bytes(type);
}
INL u8 *key_scales(int type, u8 *base, int dim, i64 at) {
  return base + at / 16 * 16 * kv_bytes(type, dim) + (i64)dim * 16 + at % 16 * 4;
}

// One row's keys and values, to where its position lies.
INL void store_row(Thread *t, const Store *op, int row) {
  const int dim = op->headDim, filled = FILLED_HEAD(op->valueDim);
  const i64 slot = op->kept ? AT(i32, t->p.slots)[row] : 0;
  const i64 position = AT(i32, op->kept ? t->p.cells : t->p.places)[row];
  for (int h = 0; h < op->heads; h++) {
    const i64 base = (slot * op->heads + h) * op->ctxLen;
    const f32 *k = AT(f32, op->k) + ((i64)row * op->heads + h) * dim;
    const f32 *v = AT(f32, op->v) + ((i64)row * op->heads + h) * op->valueStride;
    u8 *keys = AT(u8, op->keys) + base * kv_bytes(op->type, dim);
    u8 *values = AT(u8, op->values) + (base + position) * kv_bytes(op->type, filled);
    write_kv(op->type, key_place(op->type, keys, dim, position), key_scales(op->type, keys, dim, position), 16, k, dim);
    write_kv(op->type, values, values + filled, 1, v, op->valueDim);
  }
}

typedef struct {
  const f32 *q;
  f32 *out;
  int from, to; // positions that it sees
  int at; // its own
  f32 slope; // what a position of distance takes off
  const f32 *sink; // a score that has no value
} Query;

INL vf mask_scores(vf s, int first, int from, int to) {
  vi at;
  UNROLL for (int i = 0; i < W; i++) at[i] = first + i;
  vi seen = (at >= from) & (at < to);
  return (vf)(((vi)s & seen) | ((vi)splat(-__builtin_inff()) & ~seen));
}

// s − slope · distance, where the first lane is `from` away
INL vf less_distance(vf s, int from, f32 slope) {
  vf away;
  UNROLL for (int i = 0; i < W; i++) away[i] = (f32)(from + i);
  return FMA(vabs(away), splat(-slope), s);
}

// Positions first … end of the block of BLOCK that begins at `block`; scores of those in front of `last` are made.
typedef struct {
  int block, first, end, last;
} Span;
typedef f32 Scores[QUERIES][BLOCK];
typedef f32 ValueSums[QUERIES][HEAD_MAX];

// Keys times `count` queries. Keys and values are fetched ahead, as weights are.
INL void make_scores(int count, int type, const u8 *keys, int dim, const Query *queries, Span span, Scores scores) {
  enum { REGS = POSITIONS / W };
  for (int at = span.first; at < span.end; at += POSITIONS) {
    vf acc[QUERIES][REGS];
    UNROLL for (int i = 0; i < count; i++) UNROLL for (int r = 0; r < REGS; r++) acc[i][r] = (vf){};
    const u8 *next = keys + (at + POSITIONS) / 16 * 16 * kv_bytes(type, dim);
    for (int d = 0; d < dim; d++) {
      __builtin_prefetch(next + (i64)d * POSITIONS * unit_bytes(type));
      vf k[REGS];
      UNROLL for (int r = 0; r < REGS; r++) k[r] = load_keys(type, keys, dim, at + r * W, d);
      UNROLL for (int i = 0; i < count; i++) {
        vf q = splat(queries[i].q[d]);
        UNROLL for (int r = 0; r < REGS; r++) acc[i][r] = FMA(k[r], q, acc[i][r]);
      }
    }
    UNROLL for (int i = 0; i < count; i++) UNROLL for (int r = 0; r < REGS; r++)
      STORE(&scores[i][at - span.block + r * W], acc[i][r]);
  }
}

// Scores of one query to shares of its values; their largest so far and their sum go along.
NOINL void soften(const Attend *op, const Query *q, Span span, f32 *scores, f32 *most, f32 *total, f32 *sums, int filled) {
  vf m = splat(-__builtin_inff());
  for (int at = span.first; at < span.last; at += W) {
    vf s = LOAD(vf, scores + at - span.block) * op->scale;
    if (op->softCap > 0) s = vtanh(s / op->softCap) * op->softCap;
    if (q->slope) s = less_distance(s, at - q->at, q->slope);
    if (at < q->from || at + W > q->to) s = mask_scores(s, at, q->from, q->to);
    STORE(scores + at - span.block, s);
    m = vmax(m, s);
  }
  f32 now = largest(m);
  if (now == -__builtin_inff()) { // sees nothing of this block
    for (int at = span.first; at < span.last; at += W) STORE(scores + at - span.block, (vf){});
    return;
  }
  now = now > *most ? now : *most;
  f32 keep = *most == -__builtin_inff() ? 0 : vexp(splat(*most - now))[0];
  vf all = {};
  for (int at = span.first; at < span.last; at += W) {
    vf x = LOAD(vf, scores + at - span.block) - now;
    vf e = (vf)((vi)vexp(x) & ~(x <= -87.0f));
    all += e;
    STORE(scores + at - span.block, e);
  }
  *total = *total * keep + sum(all);
  *most = now;
  if (keep != 1) for (int d = 0; d < filled; d += W) STORE(sums + d, LOAD(vf, sums + d) * keep);
}

INL void add_values(int count, int type, const u8 *values, int filled, Span span, const Scores scores, ValueSums sums) {
  const int regs_at_once = type == KV_F16 && count <= FEW_QUERIES ? VALUE_REGS_MAX : 2;
  for (int d = 0, regs; d < filled; d += regs * W) {
    regs = filled - d < regs_at_once * W ? 1 : regs_at_once;
    vf acc[QUERIES][VALUE_REGS_MAX];
    UNROLL for (int i = 0; i < count; i++) UNROLL for (int r = 0; r < regs_at_once; r++)
      acc[i][r] = r < regs ? LOAD(vf, &sums[i][d + r * W]) : (vf){};
    if (regs > 1) {
      for (int at = span.first; at < span.end; at++) {
        vf v[VALUE_REGS_MAX];
        const u8 *ahead = values + at * kv_bytes(type, filled) + AHEAD;
        if (d == 0) for (i64 i = 0; i < kv_bytes(type, filled); i += 64) __builtin_prefetch(ahead + i);
        UNROLL for (int r = 0; r < regs_at_once; r++) v[r] = load_values(type, values, filled, at, d + r * W);
        UNROLL for (int i = 0; i < count; i++) UNROLL for (int r = 0; r < regs_at_once; r++)
          acc[i][r] = FMA(v[r], splat(scores[i][at - span.block]), acc[i][r]);
      }
    } else {
      for (int at = span.first; at < span.end; at++) {
        vf v = load_values(type, values, filled, at, d);
        UNROLL for (int i = 0; i < count; i++) acc[i][0] = FMA(v, splat(scores[i][at - span.block]), acc[i][0]);
      }
    }
    UNROLL for (int i = 0; i < count; i++) UNROLL for (int r = 0; r < regs_at_once; r++)
      if (r < regs) STORE(&sums[i][d + r * W], acc[i][r]);
  }
}
#if QUERIES == 8
#define ATTENDS(X) X(4, f32, KV_F32) X(1, f16, KV_F16) X(4, f16, KV_F16) X(8, f16, KV_F16) X(1, q8_0, KV_Q8_0) X(4, q8_0, KV_Q8_0)
#else
#define ATTENDS(X) X(4, f32, KV_F32) X(1, f16, KV_F16) X(4, f16, KV_F16) X(1, q8_0, KV_Q8_0) X(4, q8_0, KV_Q8_0)
#endif
#define DEFINE(count, name, type) \
  NOINL void scores_##count##_##name(const u8 *keys, int dim, const Query *queries, Span span, Scores scores) { \
    make_scores(count, type, keys, dim, queries, span, scores); \
  } \
  NOINL void values_##count##_##name(const u8 *values, int filled, Span span, const Scores scores, ValueSums sums) { \
    add_values(count, type, values, filled, span, scores, sums); \
  }
ATTENDS(DEFINE)
#undef DEFINE

// `there` queries of one KV head as `count`: those that are not there are the first again.
NOINL void attend_queries(int count, const Attend *op, const u8 *keys, const u8 *values, Query *queries, int there) {
  const int dim = op->headDim, filled = FILLED_HEAD(op->valueDim);
  Scores scores __attribute__((aligned(64)));
  ValueSums sums __attribute__((aligned(64)));
  f32 most[QUERIES], total[QUERIES];
  int from = queries[0].from, to = queries[0].to;
  for (int i = 0; i < count; i++) {
    if (i >= there) queries[i] = queries[0];
    from = MIN(from, queries[i].from);
    to = MAX(to, queries[i].to);
    most[i] = queries[i].sink ? *queries[i].sink : -__builtin_inff();
    total[i] = queries[i].sink ? 1 : 0;
    for (int d = 0; d < filled; d += W) STORE(&sums[i][d], (vf){});
  }
  for (int block = from / BLOCK * BLOCK; block < to; block += BLOCK) {
    Span span = {block, MAX(block, from / POSITIONS * POSITIONS), MIN(block + BLOCK, to)};
    span.last = (span.end + POSITIONS - 1) / POSITIONS * POSITIONS;
#define CASE(n, name, kind) if (count == n && op->type == kind) scores_##n##_##name(keys, dim, queries, span, scores);
    ATTENDS(CASE)
#undef CASE
    for (int i = 0; i < there; i++) soften(op, &queries[i], span, scores[i], &most[i], &total[i], sums[i], filled);
    for (int i = there; i < count; i++)
      for (int at = span.first; at < span.last; at += W) STORE(&scores[i][at - block], (vf){});
    span.first = MAX(block, from);
#define CASE(n, name, kind) if (count == n && op->type == kind) values_##n##_##name(values, filled, span, scores, sums);
    ATTENDS(CASE)
#undef CASE
  }
  for (int i = 0; i < there; i++) {
    f32 inverse = 1 / total[i];
    for (int d = 0; d < op->valueDim; d += W)
      store_some(queries[i].out + d, LOAD(vf, &sums[i][d]) * inverse, op->valueDim - d);
  }
}

INL void attend_some(const Attend *op, const u8 *keys, const u8 *values, Query *queries, int there) {
  if (op->type == KV_F16 && there > 4) {
    attend_queries(8, op, keys, values, queries, there);
    return;
  }
  for (int i = 0; i < there; i += 4) {
    const int some = MIN(4, there - i);
    attend_queries(some == 1 && op->type != KV_F32 ? 1 : 4, op, keys, values, queries + i, some);
  }
}

// One chunk: a KV head and a block of rows of one sequence.
NOINL void attend_chunk(Thread *t, const Attend *op, int chunk) {
  const i32 *block = AT(i32, t->p.blocks) + (i64)(chunk / op->kvHeads) * 4;
  const int head = chunk % op->kvHeads, dim = op->headDim, first = block[0], end = block[0] + block[1];
  const int begin = op->heads * head, shared = op->heads; // heads of this KV head: floor(h · kvHeads / heads) = head
  const i64 slot = op->kept ? AT(i32, t->p.slots)[first] : 0;
  const i64 base = (slot * op->kvHeads + head) * op->ctxLen + (op->kept ? 0 : block[2]);
  const u8 *keys = AT(u8, op->keys) + base * kv_bytes(op->type, dim);
  const u8 *values = AT(u8, op->values) + base * kv_bytes(op->type, FILLED_HEAD(op->valueDim));
  Query queries[QUERIES];
  int there = 0;
  for (int row = first; row < end; row++) {
    for (int h = (begin + op->kvHeads - 1) / op->kvHeads; h * op->kvHeads < begin + shared; h++) {
      const i64 at = (i64)row * op->heads + h;
      Query *q = &queries[there++];
      *q = (Query){AT(f32, op->q) + at * dim, AT(f32, op->out) + at * op->valueDim};
      q->slope = op->slopes ? AT(f32, op->slopes)[h] : 0;
      q->sink = op->sinks ? AT(f32, op->sinks) + h : 0;
      if (op->kept) {
        q->at = AT(i32, t->p.cells)[row];
        q->to = op->spans ? AT(i32, t->p.ends)[row] : q->at + 1;
        if (op->window > 0) q->from = op->chunked ? q->at - q->at % op->window : MAX(0, q->at + 1 - op->window);
      } else if (op->spans) {
        q->at = AT(i32, t->p.places)[row] - block[2];
        q->from = AT(i32, t->p.starts)[row];
        q->to = AT(i32, t->p.ends)[row];
      } else {
        q->at = AT(i32, t->p.places)[row] - block[2];
        q->to = op->window > 0 ? MIN(block[3], q->at + op->window / 2 + 1) : block[3];
        q->from = op->window > 0 ? MAX(0, q->at - op->window / 2) : 0;
      }
      if (there == QUERIES) {
        attend_some(op, keys, values, queries, there);
        there = 0;
      }
    }
  }
  if (there) attend_some(op, keys, values, queries, there);
}

// One KV head of a slot: what lies behind `keep` + `discard` moves down by `discard`, its keys turned back.
NOINL void shift_chunk(Thread *t, const Shift *op, int head) {
  const int dim = op->headDim, filled = FILLED_HEAD(op->valueDim), pairs = op->rotaryDim / 2;
  const i64 base = ((i64)t->p.slot * op->heads + head) * op->ctxLen;
  const i64 each = kv_bytes(op->type, filled);
  u8 *keys = AT(u8, op->keys) + base * kv_bytes(op->type, dim), *values = AT(u8, op->values) + base * each;
  f32 k[HEAD_MAX];
  for (i64 to = t->p.keep; to < t->p.length - t->p.discard; to++) {
    i64 from = to + t->p.discard;
    read_kv(op->type, key_place(op->type, keys, dim, from), key_scales(op->type, keys, dim, from), 16, k, dim);
    for (i64 i = 0; i < each; i++) values[to * each + i] = values[from * each + i];
    for (int i = 0; op->cos && i < pairs; i++) {
      int a = op->neox ? i : 2 * i, b = op->neox ? i + pairs : 2 * i + 1;
      f32 c = AT(f32, op->cos)[i], s = AT(f32, op->sin)[i], x = k[a], y = k[b];
      k[a] = x * c - y * s;
      k[b] = x * s + y * c;
    }
    write_kv(op->type, key_place(op->type, keys, dim, to), key_scales(op->type, keys, dim, to), 16, k, dim);
  }
}

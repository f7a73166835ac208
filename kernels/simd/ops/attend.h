// attend: attention over the KV cache.
//
// Scores are computed in blocks of positions with a running maximum (arXiv:2205.14135); blocks begin at multiples of
// BLOCK, so a row's bits do not depend on the other rows of its pass.
#pragma once
#include "attend-eight.h"
#include "attend-four.h"
#include "attend-words.h"

#if W == 16
#define QUERIES 8
#define POSITIONS 32 // scores computed at once
#define VALUE_REGS_QUERIES 4
#else
#define QUERIES 4
#define POSITIONS 16
#define VALUE_REGS_QUERIES 1
#endif
#define VALUE_REGS_MAX 4

// Each step prefetches about as many bytes as it reads.
INL void fetch_stream(const u8 *from, int bytes) {
  UNROLL for (int i = 0; i < bytes; i += 64) __builtin_prefetch(from + i, 0, 2);
}
typedef f32 Scores[QUERIES][BLOCK];
typedef f32 ValueSums[QUERIES][HEAD_MAX];

// Keys times queries, (dim, count). A step of `next` is one value of POSITIONS keys.
INL void make_scores(int count, int type, const u8 *keys, int dim, const f32 *queries, Span span, Stream next, Scores scores) {
  enum { REGS = POSITIONS / W };
  for (int at = span.first; at < span.end; at += POSITIONS) {
    vf acc[QUERIES][REGS];
    UNROLL for (int i = 0; i < count; i++) UNROLL for (int r = 0; r < REGS; r++) acc[i][r] = (vf){};
    for (int d = 0; d < dim; d++, next.from += next.each) {
      fetch_stream(next.from, POSITIONS * unit_bytes(type));
      vf k[REGS];
      UNROLL for (int r = 0; r < REGS; r++) k[r] = load_keys(type, keys, dim, at + r * W, d);
      UNROLL for (int i = 0; i < count; i++) {
        vf q = splat(queries[d * count + i]);
        UNROLL for (int r = 0; r < REGS; r++) acc[i][r] = FMA(k[r], q, acc[i][r]);
      }
    }
    UNROLL for (int i = 0; i < count; i++) UNROLL for (int r = 0; r < REGS; r++)
      STORE(&scores[i][at - span.block + r * W], acc[i][r]);
  }
}

// Converts differences of scores to shares; returns their sum. in_words: to base 2, by vexp2, in half the time
INL vf shares_of(int in_words, f32 *scores, int count, f32 less) {
  vf all = {};
  for (int at = 0; at < count; at += W) {
    const vf x = LOAD(vf, scores + at) - less;
    const vf e = in_words ? vexp2(x) : (vf)((vi)exp_below(x) & ~(x <= -87.0f));
    all += e;
    STORE(scores + at, e);
  }
  return all;
}
NOINL vf shares_floats(f32 *scores, int count, f32 less) { return shares_of(0, scores, count, less); }
NOINL vf shares_words(f32 *scores, int count, f32 less) { return shares_of(1, scores, count, less); }
// Converts scores of one query to shares of its values; updates their maximum and sum.
NOINL void soften(int in_words, const Attend *op, const Query *q, Span span, f32 *scores, f32 *most, f32 *total, f32 *sums, int filled) {
  vf m = splat(-__builtin_inff());
  const int plain = !(op->softCap > 0) && !q->slope && !q->biases && q->from <= span.first && q->to >= span.last;
  const f32 scale = plain && in_words ? op->scale * LOG2_E : op->scale;
  for (int at = span.first; at < span.last; at += W) {
    vf s = LOAD(vf, scores + at - span.block) * scale;
    if (!plain) {
      s = mask_scores(bend(op, q, at, s), at, q->from, q->to);
      if (in_words) s *= LOG2_E;
    }
    STORE(scores + at - span.block, s);
    m = vmax(m, s);
  }
  f32 now = tree_largest(m);
  if (now == -__builtin_inff()) { // attends to no position of this block
    for (int at = span.first; at < span.last; at += W) STORE(scores + at - span.block, (vf){});
    return;
  }
  now = now > *most ? now : *most;
  const vf change = splat(*most - now);
  f32 keep = *most == -__builtin_inff() ? 0 : (in_words ? vexp2(change) : vexp(change))[0];
  const vf all = (in_words ? shares_words : shares_floats)(scores + span.first - span.block, span.last - span.first, now);
  *total = *total * keep + sum(all);
  *most = now;
  if (keep != 1) for (int d = 0; d < filled; d += W) STORE(sums + d, LOAD(vf, sums + d) * keep);
}
// Registers of a position's values that are added at once.
INL int value_regs(int count, int type) { return type == KV_F16 && count <= VALUE_REGS_QUERIES ? VALUE_REGS_MAX : 2; }
// A step of `next` is a position's values in one pass.
INL void add_values(int count, int type, const u8 *values, int filled, Span span, Stream next, const Scores scores, ValueSums sums) {
  const int regs_at_once = value_regs(count, type);
  for (int d = 0, regs; d < filled; d += regs * W) {
    regs = filled - d < regs_at_once * W ? 1 : regs_at_once;
    vf acc[QUERIES][VALUE_REGS_MAX];
    UNROLL for (int i = 0; i < count; i++) UNROLL for (int r = 0; r < regs_at_once; r++)
      acc[i][r] = r < regs ? LOAD(vf, &sums[i][d + r * W]) : (vf){};
    if (regs > 1) {
      for (int at = span.first; at < span.end; at++, next.from += next.each) {
        vf v[VALUE_REGS_MAX];
        fetch_stream(next.from, regs_at_once * W * unit_bytes(type));
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
#define ATTENDS(X) X(4, f32, KV_F32) X(8, f32, KV_F32) X(1, f16, KV_F16) X(4, f16, KV_F16) X(8, f16, KV_F16)
#elif WORD_PRODUCTS
#define ATTENDS(X) X(4, f32, KV_F32) X(1, f16, KV_F16) X(4, f16, KV_F16)
#else
#define ATTENDS(X) X(4, f32, KV_F32) X(1, f16, KV_F16) X(4, f16, KV_F16) X(1, q8_0, KV_Q8_0) X(4, q8_0, KV_Q8_0)
#endif
#define DEFINE(count, name, type) \
  NOINL void scores_##count##_##name(const u8 *keys, int dim, const f32 *queries, Span span, Stream next, Scores scores) { \
    make_scores(count, type, keys, dim, queries, span, next, scores); \
  } \
  NOINL void values_##count##_##name(const u8 *values, int filled, Span span, Stream next, const Scores scores, ValueSums sums) { \
    add_values(count, type, values, filled, span, next, scores, sums); \
  }
ATTENDS(DEFINE)
#undef DEFINE

// `there` queries of one KV head, padded to `count` with the first one.
NOINL void attend_queries(int count, const Attend *op, const u8 *keys, const u8 *values, Query *queries, int there) {
  const int dim = op->headDim, filled = FILLED_HEAD(op->valueDim);
  Scores scores __attribute__((aligned(64)));
  ValueSums sums __attribute__((aligned(64)));
  f32 most[QUERIES], total[QUERIES];
  union { f32 each[HEAD_MAX * QUERIES]; EightQuery eight[EIGHT_QUERIES]; FourQuery four[FOUR_QUERIES]; } in;
  f32 *each = in.each; // values of the queries, interleaved
  const int in_four = op->type == KV_Q4_0, in_eight = WORD_PRODUCTS && op->type == KV_Q8_0, in_words = in_four || in_eight;
  int from = queries[0].from, to = queries[0].to;
  for (int i = 0; i < count; i++) {
    if (i >= there) queries[i] = queries[0];
    from = MIN(from, queries[i].from);
    to = MAX(to, queries[i].to);
    begin_query(op, &queries[i], in_words ? LOG2_E : 1, 1, 1, &most[i], &total[i], sums[i], filled);
    if (in_four) pack_four(&in.four[i], queries[i].q, dim);
    else if (in_eight) pack_eight(&in.eight[i], queries[i].q, dim);
    else for (int d = 0; d < dim; d++) each[d * count + i] = queries[i].q[d];
  }
  const i64 key_bytes = kv_bytes(op->type, dim), value_bytes = kv_bytes(op->type, filled);
  const int positions = in_eight ? 2 * EIGHT_LANES : POSITIONS, at_once = in_eight ? 2 * EIGHT_LANES : value_regs(count, op->type) * W;
  Stream to_values = {0, (positions * value_bytes + dim - 1) / dim};
  Stream to_keys = {0, (at_once * key_bytes + filled - 1) / filled};
  for (int block = from / BLOCK * BLOCK; block < to; block += BLOCK) {
    to_keys.from = keys + (block + BLOCK) * key_bytes;
    Span span = {block, MAX(block, from / POSITIONS * POSITIONS), MIN(block + BLOCK, to)};
    to_values.from = values + span.first * value_bytes;
    span.last = (span.end + POSITIONS - 1) / POSITIONS * POSITIONS;
#define CASE(n, name, kind) if (count == n && op->type == kind) scores_##n##_##name(keys, dim, each, span, to_values, scores);
    ATTENDS(CASE)
#undef CASE
#if WORD_PRODUCTS
    if (in_eight) (count == 1 ? eight_scores_one : eight_scores_some)(keys, dim, in.eight, span, to_values, scores);
#endif
    if (in_four) (count == 1 ? four_scores_one : four_scores_some)(keys, dim, in.four, span, to_values.from, scores);
    for (int i = 0; i < there; i++)
      soften(in_words, op, &queries[i], span, scores[i], &most[i], &total[i], sums[i], filled);
    for (int i = there; i < count; i++)
      for (int at = span.first; at < span.last; at += W) STORE(&scores[i][at - block], (vf){});
    span.first = MAX(block, from);
#define CASE(n, name, kind) if (count == n && op->type == kind) values_##n##_##name(values, filled, span, to_keys, scores, sums);
    ATTENDS(CASE)
#undef CASE
#if WORD_PRODUCTS
    if (in_eight) (count == 1 ? eight_sums_one : eight_sums_some)(values, filled, span, to_keys, scores, sums);
#endif
    if (in_four) (count == 1 ? four_sums_one : four_sums_some)(values, filled, span, to_keys.from, scores, sums);
  }
  for (int i = 0; i < there; i++) {
    // a query that sees no key gives zeros; a total of 0 alone may come from NaN scores
    const int none = total[i] == 0 && queries[i].to <= queries[i].from;
    const f32 inverse = none ? 0 : 1 / total[i];
    for (int d = 0; d < op->valueDim; d += W)
      store_some(queries[i].out + d, LOAD(vf, &sums[i][d]) * inverse, op->valueDim - d);
  }
}

NOINL void attend_some(const Attend *op, const u8 *keys, const u8 *values, Query *queries, int there) {
  if (QUERIES == 8 && op->type < KV_Q8_0 && there > 4) {
    attend_queries(8, op, keys, values, queries, there);
    return;
  }
  const int most = op->type == KV_Q4_0 ? FOUR_QUERIES : 4;
  for (int i = 0; i < there; i += most) {
    const int some = MIN(most, there - i);
    attend_queries(some == 1 && op->type != KV_F32 ? 1 : most, op, keys, values, queries + i, some);
  }
}

// A row's query of a head.
NOINL Query query_of(const Thread *t, const Attend *op, const i32 *block, int row, int head) {
  const i64 at = (i64)row * op->heads + head;
  Query q = {AT(f32, op->q) + at * op->headDim, AT(f32, op->out) + at * op->valueDim};
  q.slope = op->slopes ? AT(f32, op->slopes)[head] : 0;
  q.biases = op->biases ? AT(f32, op->biases) + (i64)head * (2 * op->far + 1) + op->far : 0;
  q.sink = op->sinks ? AT(f32, op->sinks) + head : 0;
  if (op->lengths) {
    q.to = AT(i32, op->lengths)[row];
    return q;
  }
  if (op->kept) {
    q.at = AT(i32, t->p.cells)[row];
    q.to = op->spans ? AT(i32, t->p.ends)[row] : q.at + 1;
    if (op->ownKeys && q.to == q.at + 1) {
      const i64 own = (i64)row * op->kvHeads + head * op->kvHeads / op->heads;
      q.own_key = AT(f32, op->ownKeys) + own * op->headDim;
      q.own_value = AT(f32, op->ownValues) + own * op->valueDim;
      q.to = q.at;
    }
    if (op->window > 0) q.from = op->chunked ? q.at - q.at % op->window : MAX(0, q.at + 1 - op->window);
    return q;
  }
  q.at = AT(i32, t->p.scratchRows)[row] - block[2];
  if (op->spans) {
    q.from = AT(i32, t->p.starts)[row];
    q.to = AT(i32, t->p.ends)[row];
  } else {
    q.to = op->window > 0 ? MIN(block[3], q.at + op->window / 2 + 1) : block[3];
    q.from = op->window > 0 ? MAX(0, q.at - op->window / 2) : 0;
  }
  return q;
}

// A row's queries of a KV head, of which the cache holds `keys` and `values`.
typedef struct {
  const u8 *keys, *values;
  Query queries[QUERIES];
} Asked;

// Copies the positions of the chosen blocks up to `cell`, as floats; returns how many.
NOINL int gather_chosen(const Attend *op, const Asked *from, const i32 *blocks, int cell, f32 *keys, f32 *values) {
  const int dim = op->headDim, filled = FILLED_HEAD(op->valueDim), type = op->type;
  int there = 0;
  for (int i = 0; i < op->chosenCount && blocks[i] >= 0; i++) {
    const i64 end = MIN(((i64)blocks[i] + 1) * op->chosenBlock, cell + 1);
    for (i64 at = (i64)blocks[i] * op->chosenBlock; at < end; at++, there++) {
      f32 k[HEAD_MAX];
      read_key(type, from->keys, dim, at, k);
      f32 *tile = keys + (i64)(there / 16 * 16) * dim + there % 16;
      for (int d = 0; d < dim; d++) tile[d * 16] = k[d];
      read_value(type, from->values, filled, at, values + (i64)there * filled);
    }
  }
  return there;
}

// A chunk whose rows choose their positions. Rows that may choose all of theirs read the cache itself.
NOINL void attend_chosen_chunk(Thread *t, const Attend *op, const i32 *block, int head, Asked *from) {
  const int shared = op->heads / op->kvHeads, dim = op->headDim;
  const i64 most = MIN((i64)op->chosenCount * op->chosenBlock, op->ctxLen);
  f32 *keys = (f32 *)t->scratch, *values = keys + (most + POSITIONS) / POSITIONS * POSITIONS * dim;
  Attend floats = *op;
  floats.type = KV_F32;
  for (int row = block[0]; row < block[0] + block[1]; row++) {
    const int cell = AT(i32, t->p.cells)[row], group = op->chosenGroups == 1 ? 0 : head;
    const i32 *blocks = AT(i32, op->chosen) + ((i64)row * op->chosenGroups + group) * op->chosenCount;
    const int some = cell >= most, there = some ? gather_chosen(op, from, blocks, cell, keys, values) : 0;
    for (int h = 0; h < shared; h += QUERIES) {
      const int count = MIN(QUERIES, shared - h);
      for (int i = 0; i < count; i++) {
        from->queries[i] = query_of(t, op, block, row, head * shared + h + i);
        if (some) from->queries[i].to = there, from->queries[i].own_key = 0;
      }
      attend_some(some ? &floats : op, some ? (u8 *)keys : from->keys, some ? (u8 *)values : from->values, from->queries, count);
    }
  }
}

// Copies the positions from `first` to `cell` and the entries that a row attends to, as floats; both serve as keys and
// values. `first` keeps its index within a tile of 16. Returns the end of the copied vectors.
NOINL int gather_entries(const Attend *op, const Asked *from, const i32 *chosen, i64 first, i64 cell, f32 *keys, f32 *values) {
  const int dim = op->headDim, filled = FILLED_HEAD(op->valueDim), type = op->type;
  const i64 base = first / 16 * 16, count = (cell + 1) / op->ratio;
  for (i64 at = base; at <= cell; at += 16) {
    f32 *tile = keys + (at - base) * dim, *v = values + (at - base) * filled;
    for (int i = 0; i < 16; i += W) key_lanes(type, from->keys, dim, at + i, tile + i, 16);
    for (int i = 0; i < 16; i++) for (int d = 0; d < filled; d++) v[i * filled + d] = d < dim ? tile[d * 16 + i] : 0;
  }
  int there = (int)(cell + 1 - base);
  for (i64 i = 0; chosen ? i < op->chosenCount && chosen[i] >= 0 : i < count; i++, there++) {
    f32 *tile = keys + (i64)(there / 16 * 16) * dim + there % 16, *v = values + (i64)there * filled;
    read_value(type, from->values, filled, ((chosen ? chosen[i] : i) + 1) * op->ratio - 1, v);
    for (int d = 0; d < dim; d++) tile[d * 16] = v[d];
  }
  return there;
}

// Number of heads that share the data which a row gathers: many heads per chunk, unless threads would be idle.
INL int head_groups(const Thread *t, const Attend *op) {
  const int wanted = 2 * t->p.threads / MAX(t->p.blockCount, 1), most = op->heads / QUERIES;
  return op->ratio ? MAX(1, MIN(wanted, most)) : op->kvHeads;
}
NOINL void attend_entries_chunk(Thread *t, const Attend *op, const i32 *block, int group, Asked *from) {
  const int groups = head_groups(t, op), begin = op->heads * group / groups, end = op->heads * (group + 1) / groups;
  const i64 entries = op->chosen ? op->chosenCount : op->ctxLen / op->ratio;
  const i64 most = (MIN(op->window, op->ctxLen) + entries + 63) / 32 * 32;
  f32 *keys = (f32 *)t->scratch, *values = keys + most * op->headDim;
  Attend floats = *op;
  floats.type = KV_F32;
  for (int row = block[0]; row < block[0] + block[1]; row++) {
    const i64 cell = AT(i32, t->p.cells)[row], first = MAX(0, cell + 1 - op->window);
    const i32 *chosen = op->chosen ? AT(i32, op->chosen) + (i64)row * op->chosenCount : 0;
    const int there = gather_entries(op, from, chosen, first, cell, keys, values);
    for (int h = begin; h < end; h += QUERIES) {
      const int count = MIN(QUERIES, end - h);
      for (int i = 0; i < count; i++) {
        from->queries[i] = query_of(t, op, block, row, h + i);
        from->queries[i].from = first % 16;
        from->queries[i].to = there;
      }
      attend_some(&floats, (u8 *)keys, (u8 *)values, from->queries, count);
    }
  }
}

// One chunk: a KV head, or a group of heads, and a block of rows of one sequence.
NOINL void attend_chunk(Thread *t, const Attend *op, int chunk) {
  const int count = t->p.blockCount; // blocks per KV head, whose keys stay cached; the longest, last ones go first
  const i32 *block = AT(i32, t->p.blocks) + (i64)(count - 1 - chunk % count) * 4;
  const int part = chunk / count, head = op->ratio ? 0 : part, dim = op->headDim, first = block[0], end = block[0] + block[1];
  const int begin = op->heads * head, shared = op->heads; // heads of this KV head: floor(h · kvHeads / heads) = head
  const i64 slot = op->kept ? AT(i32, t->p.slots)[first] : 0;
  const i64 base = (slot * op->kvHeads + head) * op->ctxLen + (op->kept ? 0 : block[2]);
  const u8 *keys = AT(u8, op->keys) + base * kv_bytes(op->type, dim);
  const u8 *values = AT(u8, op->values) + base * kv_bytes(op->type, FILLED_HEAD(op->valueDim));
  if (op->chosen || op->ratio) {
    Asked from;
    from.keys = keys;
    from.values = values;
    if (op->ratio) attend_entries_chunk(t, op, block, part, &from);
    else attend_chosen_chunk(t, op, block, head, &from);
    return;
  }
  const int is_prompt = WORD_PRODUCTS && op->type != KV_F32 && first >= t->p.decodeRows, most = is_prompt ? SWEEP : QUERIES;
  Query few[QUERIES], *queries = is_prompt ? (Query *)t->scratch : few;
  int there = 0;
  for (int row = first; row < end; row++) {
    for (int h = (begin + op->kvHeads - 1) / op->kvHeads; h * op->kvHeads < begin + shared; h++) {
      queries[there++] = query_of(t, op, block, row, h);
      const int is_last = row == end - 1 && (h + 1) * op->kvHeads >= begin + shared;
      if (there < most && !is_last) continue;
      if (is_prompt) attend_words(t, op, keys, values, queries, there);
      else attend_some(op, keys, values, queries, there);
      there = 0;
    }
  }
}

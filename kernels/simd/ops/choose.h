// choose: the positions that a row attends to, by scores of keys that only this serves.
#pragma once
#include "kv.h"

#define SCORE_HEADS 8 // products with a key at once

// One span of a row. Whole registers of keys are read, of which some lanes may not count.
NOINL void score_positions_row(Thread *t, const ScorePositions *op, i64 each) {
  const i64 row = each / op->spans, per = (i64)op->spanBlocks * op->block, first = each % op->spans * per;
  const i64 end = MIN(first + per, AT(i32, t->p.cells)[row] + 1);
  const u8 *keys = AT(u8, op->keys) + (i64)AT(i32, t->p.slots)[row] * op->ctxLen * kv_bytes(op->type, op->headDim);
  const f32 *q = AT(f32, op->q) + row * op->heads * op->headDim;
  const f32 *weights = op->weights ? AT(f32, op->weights) + row * op->heads : 0;
  f32 *scores = AT(f32, op->scores) + row * (weights ? 1 : op->heads) * op->blocks, *tile = (f32 *)t->scratch;
  for (i64 at = first / W * W; at < end; at += W) {
    vf all = {};
    for (int d = 0; d < op->headDim; d++) STORE(tile + d * W, load_keys(op->type, keys, op->headDim, at, d));
    for (int h = 0; h < op->heads; h += SCORE_HEADS) {
      const int some = MIN(SCORE_HEADS, op->heads - h);
      vf acc[SCORE_HEADS] = {};
      for (int d = 0; d < op->headDim; d++)
        UNROLL for (int i = 0; i < SCORE_HEADS; i++)
          acc[i] = FMA(LOAD(vf, tile + d * W), splat(q[(h + MIN(i, some - 1)) * op->headDim + d]), acc[i]);
      for (int i = 0; i < some; i++) {
        if (weights) all = FMA(vmax(acc[i], (vf){}), splat(weights[h + i]), all);
        if (weights && h + i < op->heads - 1) continue;
        const vf now = weights ? all : acc[i];
        f32 *to = scores + (weights ? 0 : (i64)(h + i) * op->blocks);
        for (i64 lane = MAX(first - at, 0); lane < MIN(end - at, W); lane++) {
          f32 *best = to + (at + lane) / op->block;
          if ((at + lane) % op->block == 0 || now[lane] > *best) *best = now[lane];
        }
      }
    }
  }
}

// Larger for larger scores; both zeros are alike.
INL u32 rank_of(f32 score) {
  u32 bits;
  score += 0.0f;
  __builtin_memcpy(&bits, &score, 4);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// The rank of the score that is the `count`th from above; `*equal`: how many of that rank are among them.
INL u32 least_rank(const f32 *scores, int n, int count, int *equal) {
  u32 known = 0, mask = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    int counts[256];
    for (int i = 0; i < 256; i++) ((volatile int *)counts)[i] = 0; // no call of a library
    for (int i = 0; i < n; i++) {
      const u32 rank = rank_of(scores[i]);
      if ((rank & mask) == known) counts[rank >> shift & 255]++;
    }
    u32 digit = 255;
    for (; counts[digit] < count; digit--) count -= counts[digit];
    known |= digit << shift;
    mask |= 255u << shift;
  }
  *equal = count;
  return known;
}

NOINL void choose_positions_row(Thread *t, const ChoosePositions *op, i64 row) {
  const int n = AT(i32, t->p.cells)[row] / op->block + 1;
  for (i64 group = row * op->groups; group < (row + 1) * op->groups; group++) {
    f32 *scores = AT(f32, op->scores) + group * op->blocks;
    i32 *out = AT(i32, op->out) + group * op->count;
    int equal = 0, there = 0;
    u32 least = 0;
    for (int i = MAX(n - op->local, 0); i < n; i++) scores[i] = __builtin_inff();
    if (n > op->count) least = least_rank(scores, n, op->count, &equal);
    for (int i = 0; i < n && there < op->count; i++) {
      const u32 rank = rank_of(scores[i]);
      if (n <= op->count || rank > least || (rank == least && equal-- > 0)) out[there++] = i;
    }
    while (there < op->count) out[there++] = -1;
  }
}

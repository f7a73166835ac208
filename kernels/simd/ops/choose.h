// choose: the positions that a row attends to, by scores of keys that only this serves.
#pragma once
#include "kv.h"

#define SCORE_HEADS 8 // products with a key at once

// The keys of the last positions of W blocks, (headDim, W): from block `block` on, as long as they are below `end`.
NOINL void gather_keys(const ScorePositions *op, const u8 *keys, i64 block, i64 end, f32 *tile) {
  f32 k[HEAD_MAX];
  for (int lane = 0; lane < W; lane++) {
    const i64 at = (MIN(block + lane, end - 1) + 1) * op->block - 1;
    read_key(op->type, keys, op->headDim, at, k);
    for (int d = 0; d < op->headDim; d++) tile[d * W + lane] = k[d];
  }
}

// One span of a row. Whole registers of keys are read, of which some lanes may not count.
NOINL void score_positions_row(Thread *t, const ScorePositions *op, i64 each) {
  const i64 row = each / op->spans, block = op->closed ? 1 : op->block, per = op->spanBlocks * block;
  const i64 first = each % op->spans * per, there = (AT(i32, t->p.cells)[row] + 1) / (op->closed ? op->block : 1);
  const i64 end = MIN(first + per, there);
  const u8 *keys = AT(u8, op->keys) + (i64)AT(i32, t->p.slots)[row] * op->ctxLen * kv_bytes(op->type, op->headDim);
  const f32 *q = AT(f32, op->q) + row * op->heads * op->headDim;
  const f32 *weights = op->weights ? AT(f32, op->weights) + row * op->heads : 0;
  f32 *scores = AT(f32, op->scores) + row * (weights ? 1 : op->heads) * op->blocks, *tile = (f32 *)t->scratch;
  for (i64 at = first / W * W; at < end; at += W) {
    vf all = {};
    if (op->closed) gather_keys(op, keys, at, end, tile);
    else key_lanes(op->type, keys, op->headDim, at, tile, W);
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
          f32 *best = to + (at + lane) / block;
          if ((at + lane) % block == 0 || now[lane] > *best) *best = now[lane];
        }
      }
    }
  }
}

// A number that is larger for larger scores; both zeros have the same.
INL u32 rank_of(f32 score) {
  u32 bits;
  score += 0.0f;
  __builtin_memcpy(&bits, &score, 4);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// The rank of the `count`th largest score; `*equal`: how many scores of that rank are among the `count` largest.
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
  const int cell = AT(i32, t->p.cells)[row], n = op->closed ? (cell + 1) / op->block : cell / op->block + 1;
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

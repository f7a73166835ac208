// kv: the layout of keys and values, and queries on them.
//
// Keys are stored in tiles of 16 positions, (positions/16, headDim, 16), so that scores need no sum across a register;
// values as (positions, headDim padded to 16). In 8 bits, groups of 32 values of a position share a scale: the scales
// of keys follow each tile, (groups, 16), those for values follow each position.
#pragma once
#include "../functions.h"
#include "../pass.h"
#include "four-bits.h"

#define HEAD_MAX 1024
#define FILLED_HEAD(headDim) (((headDim) + 15) / 16 * 16)
#define HALF_MAX 65504.0f

#define KV_GROUP 32
typedef i8 small VEC(W);
// Bytes of `n` values of a position; in 4 bits multiples of 32.
INL i64 kv_bytes(int type, i64 n) {
  if (type == KV_Q4_0) return n / 32 * (FOUR_TILE / 16);
  return type == KV_F32 ? 4 * n : type == KV_F16 ? 2 * n : n + (n + KV_GROUP - 1) / KV_GROUP * 4;
}
// Value d of the keys of W positions from `at` on; `base` is the address of position 0's keys.
INL vf load_keys(int type, const u8 *base, int dim, i64 at, int d) {
  const u8 *tile = base + at / 16 * 16 * kv_bytes(type, dim);
  const i64 i = (i64)d * 16 + at % 16;
  if (type == KV_F32) return LOAD(vf, tile + 4 * i);
  if (type == KV_F16) return halves((const u16 *)tile + i);
  if (type == KV_Q4_0) return four_values(1, tile, at % 16, d) * halves(four_scales(tile, at % 16, d));
  return CONVERT(LOAD(small, tile + i), vf) * LOAD(vf, tile + (i64)dim * 16 + (d / KV_GROUP * 16 + at % 16) * 4);
}
// W values, beginning at d, of a position's `filled` values.
INL vf load_values(int type, const u8 *base, int filled, i64 at, int d) {
  const u8 *row = base + at * kv_bytes(type, filled), *tile = base + at / 16 * 16 * kv_bytes(type, filled);
  if (type == KV_F32) return LOAD(vf, row + 4 * d);
  if (type == KV_F16) return halves((const u16 *)row + d);
  if (type == KV_Q4_0) return four_values(0, tile, at % 16, d) * splat(half(*four_scales(tile, at % 16, d)));
  return CONVERT(LOAD(small, row + d), vf) * splat(LOAD(f32, row + filled + d / KV_GROUP * 4));
}
INL vf kept_half(vf v) { return vmax(splat(-HALF_MAX), vmin(splat(HALF_MAX), v)); } // NaN gives the second argument
#define SCALED_MIN 1.5e-36f // below this, a 127th has too few bits to divide by
// The scale of some values in 8 bits: 0 if they are too small, NaN if one is NaN.
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
// Writes a position's values, 16 places `step` apart, and their scales.
INL void write_kv(int type, u8 *to, u8 *scales, i64 step, const f32 *x, int n) {
  for (int first = 0; first < n; first += KV_GROUP) {
    const int end = MIN(first + KV_GROUP, n);
    const f32 scale = type == KV_Q8_0 ? scale_of(x + first, end - first) : 0;
    if (type == KV_Q8_0) STORE(scales + first / KV_GROUP * step * 4, scale);
    for (int i = first; i < end; i += W) {
      u16 halves[W];
      if (type == KV_F16) to_halves(halves, kept_half(load_some(x + i, end - i)));
      if (type == KV_F16 && i + W <= end) {
        if (step == 1) __builtin_memcpy(to + i * 2, halves, sizeof halves);
        else UNROLL for (int k = 0; k < W; k++) STORE(to + (i + k) * step * 2, halves[k]);
        continue;
      }
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
// The address of a position's key, and of its scales.
INL u8 *key_place(int type, u8 *base, int dim, i64 at) {
  return base + at / 16 * 16 * kv_bytes(type, dim) + at % 16 * unit_bytes(type);
}
INL u8 *key_scales(int type, u8 *base, int dim, i64 at) {
  return base + at / 16 * 16 * kv_bytes(type, dim) + (i64)dim * 16 + at % 16 * 4;
}

// Reads a position's key as floats, or its value.
NOINL void read_key(int type, const u8 *keys, int dim, i64 at, f32 *x) {
  if (type == KV_Q4_0) read_four(1, keys + at / 16 * 16 * kv_bytes(type, dim), at % 16, x, dim);
  else read_kv(type, key_place(type, (u8 *)keys, dim, at), key_scales(type, (u8 *)keys, dim, at), 16, x, dim);
}
NOINL void read_value(int type, const u8 *values, int filled, i64 at, f32 *x) {
  if (type == KV_Q4_0) read_four(0, values + at / 16 * 16 * kv_bytes(type, filled), at % 16, x, filled);
  else for (int d = 0; d < filled; d += W) STORE(x + d, load_values(type, values, filled, at, d));
}

// Stores one row's keys and values.
INL void store_row(Thread *t, const Store *op, int row) {
  const int dim = op->headDim, filled = FILLED_HEAD(op->valueDim);
  const i64 slot = op->kept ? AT(i32, t->p.slots)[row] : 0;
  const i64 position = AT(i32, op->kept ? t->p.cells : t->p.places)[row];
  const int has_value = op->ratio == 0 || (position + 1) % op->ratio == 0;
  for (int h = 0; h < op->heads; h++) {
    const i64 base = (slot * op->heads + h) * op->ctxLen;
    const f32 *k = AT(f32, op->k) + ((i64)row * op->heads + h) * dim;
    const f32 *v = AT(f32, op->v) + ((i64)row * op->heads + h) * op->valueStride;
    u8 *keys = AT(u8, op->keys) + base * kv_bytes(op->type, dim);
    if (op->type == KV_Q4_0) {
      const i64 tile = position / 16 * 16;
      write_four(1, keys + tile * kv_bytes(op->type, dim), position % 16, k, dim);
      if (has_value) write_four(0, AT(u8, op->values) + (base + tile) * kv_bytes(op->type, filled), position % 16, v, filled);
      continue;
    }
    u8 *values = AT(u8, op->values) + (base + position) * kv_bytes(op->type, filled);
    write_kv(op->type, key_place(op->type, keys, dim, position), key_scales(op->type, keys, dim, position), 16, k, dim);
    if (has_value) write_kv(op->type, values, values + filled, 1, v, op->valueDim);
  }
}

// The same for one token in 4 bits: its key is rotated back, moved, and rotated again. Returns 0 for other types.
INL int move_four(const Shift *op, u8 *keys, u8 *values, int filled, i64 from, i64 to, f32 *k, int reading) {
  const i64 key_bytes = kv_bytes(KV_Q4_0, op->headDim), value_bytes = kv_bytes(KV_Q4_0, filled);
  if (op->type != KV_Q4_0) return 0;
  if (!reading) {
    rotate(k, op->headDim, rotated_block(op->headDim));
    write_four(1, keys + to / 16 * 16 * key_bytes, to % 16, k, op->headDim);
    return 1;
  }
  read_four(1, keys + from / 16 * 16 * key_bytes, from % 16, k, op->headDim);
  rotate(k, op->headDim, rotated_block(op->headDim));
  const u8 *source = values + from / 16 * 16 * value_bytes;
  u8 *target = values + to / 16 * 16 * value_bytes;
  for (int g = 0; g < filled; g += 32, source += FOUR_TILE, target += FOUR_TILE) {
    for (int i = 0; i < 16; i++) target[four_place(0, i, to % 16)] = source[four_place(0, i, from % 16)];
    STORE(target + FOUR_SCALES + to % 16 * 2, LOAD(u16, source + FOUR_SCALES + from % 16 * 2));
  }
  return 1;
}
// One KV head of a slot: tokens after `keep` + `discard` move down by `discard`, and their keys are rotated back.
NOINL void shift_chunk(Thread *t, const Shift *op, int head) {
  const int dim = op->headDim, filled = FILLED_HEAD(op->valueDim), pairs = op->rotaryDim / 2;
  const i64 base = ((i64)t->p.slot * op->heads + head) * op->ctxLen;
  const i64 each = kv_bytes(op->type, filled);
  u8 *keys = AT(u8, op->keys) + base * kv_bytes(op->type, dim), *values = AT(u8, op->values) + base * each;
  f32 k[HEAD_MAX];
  for (i64 to = t->p.keep; to < t->p.length - t->p.discard; to++) {
    i64 from = to + t->p.discard;
    if (!move_four(op, keys, values, filled, from, to, k, 1)) {
      read_kv(op->type, key_place(op->type, keys, dim, from), key_scales(op->type, keys, dim, from), 16, k, dim);
      if (op->type == KV_Q8_0) rotate(k, dim, rotated_block(dim));
      for (i64 i = 0; i < each; i++) values[to * each + i] = values[from * each + i];
    }
    for (int i = 0; op->cos && i < pairs; i++) {
      int a = op->neox ? i : 2 * i, b = op->neox ? i + pairs : 2 * i + 1;
      f32 c = AT(f32, op->cos)[i], s = AT(f32, op->sin)[i], x = k[a], y = k[b];
      k[a] = x * c - y * s;
      k[b] = x * s + y * c;
    }
    if (move_four(op, keys, values, filled, from, to, k, 0)) continue;
    if (op->type == KV_Q8_0) rotate(k, dim, rotated_block(dim));
    write_kv(op->type, key_place(op->type, keys, dim, to), key_scales(op->type, keys, dim, to), 16, k, dim);
  }
}

typedef struct {
  const f32 *q;
  f32 *out;
  int from, to; // positions that it attends to
  int at; // its own position
  f32 slope; // ALiBi slope per position of distance
  const f32 *biases; // parts of scores by distance, from -far to far; 0: none
  const f32 *sink; // a score without a value
} Query;

INL vf mask_scores(vf s, int first, int from, int to) {
  vi at;
  UNROLL for (int i = 0; i < W; i++) at[i] = first + i;
  vi seen = (at >= from) & (at < to);
  return (vf)(((vi)s & seen) | ((vi)splat(-__builtin_inff()) & ~seen));
}

// s − slope · distance, with the first lane `from` away
INL vf less_distance(vf s, int from, f32 slope) {
  vf away;
  UNROLL for (int i = 0; i < W; i++) away[i] = (f32)(from + i);
  return FMA(vabs(away), splat(-slope), s);
}

// s + the biases of distances, with the first lane `from` away; greater distances than `far` count as that
INL vf with_biases(vf s, int from, const f32 *biases, int far) {
  if (from >= -far && from + W - 1 <= far) return s + LOAD(vf, biases + from);
  vf by;
  UNROLL for (int i = 0; i < W; i++) by[i] = biases[MAX(-far, MIN(from + i, far))];
  return s + by;
}

// kv: the layout of keys and values, and queries on them.
//
// Keys are stored in tiles of 16 positions, (positions/16, headDim, 16), so that scores need no sum across a register;
// values as (positions, headDim padded to 16). The files for 8 and 4 bits have their layouts.
#pragma once
#include "../functions.h"
#include "../pass.h"
#include "eight-bits.h"
#include "four-bits.h"

#define HEAD_MAX 1024
#define FILLED_HEAD(headDim) (((headDim) + 15) / 16 * 16)

typedef i8 small VEC(W);
// The tile of a position, and the position in it. Unsigned, because -Oz divides signed numbers.
INL i64 at_tile(u32 at) { return at / 16; }
INL i64 at_place(u32 at) { return at % 16; }
// Bytes of `n` values of a position; in 4 bits multiples of 32.
INL i64 kv_bytes(int type, i64 n) {
  if (type == KV_Q4_0) return n / 32 * (FOUR_TILE / 16);
  return type == KV_F32 ? 4 * n : type == KV_F16 ? 2 * n : eight_bytes(n);
}
// Value d of the keys of W positions from `at` on; `base` is the address of position 0's keys.
INL vf load_keys(int type, const u8 *base, int dim, i64 at, int d) {
  const u8 *tile = base + at / 16 * 16 * kv_bytes(type, dim);
  const i64 i = (i64)d * 16 + at % 16;
  if (type == KV_F32) return LOAD(vf, tile + 4 * i);
  if (type == KV_F16) return halves((const u16 *)tile + i);
  if (type == KV_Q4_0) return four_values(1, tile, at % 16, d) * halves(four_scales(tile, at % 16, d));
  return eight_values(tile + eight_place(1, dim, at % 16, d / 2 * 2), d % 2) * LOAD(vf, tile + eight_scale(dim, at % 16, d));
}
// All values of those keys, `step` floats apart.
NOINL void key_lanes(int type, const u8 *base, int dim, i64 at, f32 *to, int step) {
  for (int d = 0; d < dim; d++, to += step) STORE(to, load_keys(type, base, dim, at, d));
}
// W values, beginning at d, of a position's `filled` values.
INL vf load_values(int type, const u8 *base, int filled, i64 at, int d) {
  const u8 *row = base + at * kv_bytes(type, filled), *tile = base + at / 16 * 16 * kv_bytes(type, filled);
  if (type == KV_F32) return LOAD(vf, row + 4 * d);
  if (type == KV_F16) return halves((const u16 *)row + d);
  if (type == KV_Q4_0) return four_values(0, tile, at % 16, d) * splat(half(*four_scales(tile, at % 16, d)));
  return eight_values(tile + eight_place(0, filled, at % 16 / 2 * 2, d), at % 2) * splat(LOAD(f32, tile + eight_scale(filled, at % 16, d)));
}
INL vf kept_half(vf v) { return vmax(splat(-HALF_MAX), vmin(splat(HALF_MAX), v)); } // NaN gives the second argument
// Writes a position's values as floats or half floats, `step` places apart.
INL void write_kv(int type, u8 *to, i64 step, const f32 *x, int n) {
  for (int i = 0; i < n; i += W) {
    u16 halves[W];
    if (type == KV_F16) to_halves(halves, kept_half(load_some(x + i, n - i)));
    if (type == KV_F16 && i + W <= n && step == 1) {
      __builtin_memcpy(to + i * 2, halves, sizeof halves);
      continue;
    }
    for (int k = i; k < MIN(i + W, n); k++) {
      if (type == KV_F32) STORE(to + k * step * 4, x[k]);
      else STORE(to + k * step * 2, halves[k - i]);
    }
  }
}
INL void read_kv(int type, const u8 *from, i64 step, f32 *x, int n) {
  for (int i = 0; i < n; i++)
    x[i] = type == KV_F32 ? LOAD(f32, from + i * step * 4) : half(LOAD(u16, from + i * step * 2));
}
INL i64 unit_bytes(int type) { return type == KV_F32 ? 4 : type == KV_F16 ? 2 : 1; }
// The address of a position's key.
INL u8 *key_place(int type, u8 *base, int dim, i64 at) {
  return base + at / 16 * 16 * kv_bytes(type, dim) + at % 16 * unit_bytes(type);
}

// Reads a position's key as floats, or its value.
NOINL void read_key(int type, const u8 *keys, int dim, i64 at, f32 *x) {
  const u8 *tile = keys + at / 16 * 16 * kv_bytes(type, dim);
  if (type == KV_Q4_0) read_four(1, tile, at % 16, x, dim);
  else if (type == KV_Q8_0) read_eight(1, tile, at % 16, x, dim);
  else read_kv(type, key_place(type, (u8 *)keys, dim, at), 16, x, dim);
}
NOINL void read_value(int type, const u8 *values, int filled, i64 at, f32 *x) {
  if (type == KV_Q4_0) read_four(0, values + at / 16 * 16 * kv_bytes(type, filled), at % 16, x, filled);
  else for (int d = 0; d < filled; d += W) STORE(x + d, load_values(type, values, filled, at, d));
}
NOINL void write_key(int type, u8 *keys, int dim, i64 at, const f32 *x) {
  u8 *tile = keys + at / 16 * 16 * kv_bytes(type, dim);
  if (type == KV_Q4_0) write_four(1, tile, at % 16, x, dim);
  else if (type == KV_Q8_0) write_eight(1, tile, at % 16, x, dim);
  else write_kv(type, key_place(type, keys, dim, at), 16, x, dim);
}

// Stores one row's keys and values.
INL void store_row(Thread *t, const Store *op, int row) {
  const int dim = op->headDim, filled = FILLED_HEAD(op->valueDim), type = op->type;
  const i64 slot = op->kept ? AT(i32, t->p.slots)[row] : 0;
  const i64 position = AT(i32, op->kept ? t->p.cells : t->p.scratchRows)[row];
  const int has_value = op->ratio == 0 || (position + 1) % op->ratio == 0;
  for (int h = 0; h < op->heads; h++) {
    const i64 base = (slot * op->heads + h) * op->ctxLen, each = kv_bytes(type, filled);
    const f32 *v = AT(f32, op->v) + ((i64)row * op->heads + h) * op->valueStride;
    u8 *values = AT(u8, op->values) + base * each, *tile = values + position / 16 * 16 * each;
    write_key(type, AT(u8, op->keys) + base * kv_bytes(type, dim), dim, position, AT(f32, op->k) + ((i64)row * op->heads + h) * dim);
    if (!has_value) continue;
    if (type == KV_Q4_0) write_four(0, tile, position % 16, v, filled);
    else if (type == KV_Q8_0) write_eight(0, tile, position % 16, v, filled);
    else write_kv(type, values + position * each, 1, v, op->valueDim);
  }
}

// Copies the value of position `from` to `to`.
INL void move_value(int type, u8 *values, int filled, i64 from, i64 to) {
  const i64 each = kv_bytes(type, filled);
  if (type < KV_Q8_0) {
    for (i64 i = 0; i < each; i++) values[to * each + i] = values[from * each + i];
    return;
  }
  const u8 *source = values + from / 16 * 16 * each;
  u8 *target = values + to / 16 * 16 * each;
  const int at = from % 16, place = to % 16;
  if (type == KV_Q8_0) {
    for (int d = 0; d < filled; d++) target[eight_place(0, filled, place, d)] = source[eight_place(0, filled, at, d)];
    for (int d = 0; d < filled; d += KV_GROUP)
      STORE(target + eight_scale(filled, place, d), LOAD(f32, source + eight_scale(filled, at, d)));
    return;
  }
  for (int g = 0; g < filled; g += 32, source += FOUR_TILE, target += FOUR_TILE) {
    for (int i = 0; i < 16; i++) target[four_place(0, i, place)] = source[four_place(0, i, at)];
    STORE(target + FOUR_SCALES + place * 2, LOAD(u16, source + FOUR_SCALES + at * 2));
  }
}
// One KV head of a slot: tokens after `keep` + `discard` move down by `discard`, and their keys are rotated back. Keys
// that a Hadamard matrix has turned are turned back for that.
NOINL void shift_chunk(Thread *t, const Shift *op, int head) {
  const int dim = op->headDim, filled = FILLED_HEAD(op->valueDim), pairs = op->rotaryDim / 2;
  const i64 base = ((i64)t->p.slot * op->heads + head) * op->ctxLen;
  u8 *keys = AT(u8, op->keys) + base * kv_bytes(op->type, dim), *values = AT(u8, op->values) + base * kv_bytes(op->type, filled);
  f32 k[HEAD_MAX];
  for (i64 to = t->p.keep; to < t->p.length - t->p.discard; to++) {
    i64 from = to + t->p.discard;
    read_key(op->type, keys, dim, from, k);
    if (op->type >= KV_Q8_0) rotate(k, dim, rotated_block(dim));
    move_value(op->type, values, filled, from, to);
    for (int i = 0; op->cos && i < pairs; i++) {
      int a = op->neox ? i : 2 * i, b = op->neox ? i + pairs : 2 * i + 1;
      f32 c = AT(f32, op->cos)[i], s = AT(f32, op->sin)[i], x = k[a], y = k[b];
      k[a] = x * c - y * s;
      k[b] = x * s + y * c;
    }
    if (op->type >= KV_Q8_0) rotate(k, dim, rotated_block(dim));
    write_key(op->type, keys, dim, to, k);
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
  const f32 *own_key, *own_value; // floats of its own position, which `to` then excludes; or 0
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

// Scores of the positions from `at` on, after soft cap, ALiBi and biases; the mask comes later.
NOINL vf bend(const Attend *op, const Query *q, int at, vf s) {
  if (op->softCap > 0) s = soft_capped(s, op->softCap);
  if (q->slope) s = less_distance(s, at - q->at, q->slope);
  return q->biases ? with_biases(s, at - q->at, q->biases, op->far) : s;
}

#define BLOCK 256
// Positions first … end of the block that begins at `block`; scores are computed for positions below `last`.
typedef struct {
  int block, first, end, last;
} Span;
// Addresses to prefetch, `each` bytes apart.
typedef struct {
  const u8 *from;
  i64 each;
} Stream;

// The largest |x| of some floats in whole registers; NaN or infinite if one is.
INL f32 largest_between(const f32 *x, int begin, int end) {
  vi most = {};
  for (int at = begin; at < end; at += W) most = __builtin_elementwise_max(most, LOAD(vi, x + at) & 0x7fffffff);
  const i32 bits = largest_int(most);
  return LOAD(f32, &bits);
}
// Scales of 32 values of each position as floats; 0 for positions outside of the span, where other data may lie.
// scales: the scales of the first tile. Returns the largest scale.
NOINL f32 scale_factors(int type, const u8 *scales, i64 tile_bytes, Span span, f32 *to) {
  const int begin = span.first / 16 * 16 - span.block, end = (span.end + 15) / 16 * 16 - span.block;
  for (int at = begin; at < end; at += W) {
    const u8 *tile = scales + at_tile(span.block + at) * tile_bytes;
    const i64 place = at_place(span.block + at);
    STORE(to + at, type == KV_Q4_0 ? halves((const u16 *)tile + place) : LOAD(vf, (const f32 *)tile + place));
  }
  for (int at = begin; at < span.first - span.block; at++) to[at] = 0;
  for (int at = span.end - span.block; at < end; at++) to[at] = 0;
  return largest_between(to, begin, end);
}
// The factor that makes integers up to `most` of shares up to `largest`. Writes their scale: NaN if `largest` is NaN or infinite.
NOINL f32 inverse_share(f32 largest, f32 most, f32 *scale) {
  const int is = largest - largest == 0;
  *scale = is ? largest / most : __builtin_nanf("");
  return is && largest > SCALED_MIN ? most / largest : 0;
}

// pack: blocks from levels and scales. One function per block type, each for a unit of 256 weights: `weights` (256), or
// `x` (32, LANES) for types with eight blocks of 32. src/engine/formats/quant/ describes the layouts.
#pragma once
#include "fit.h"

INL u8 *put_half(u8 *to, f32 value) {
  STORE(to, to_half(value));
  return to + 2;
}

// The low nibbles of 256 levels: 32 bytes for each 64 levels, low nibbles the first 32.
INL void put_nibbles(const u8 *levels, u8 *to) {
  for (int run = 0; run < 4; run++)
    for (int j = 0; j < 32; j++) to[run * 32 + j] = (levels[run * 64 + j] & 15) | levels[run * 64 + 32 + j] << 4;
}

// The low 2 bits of 256 levels: 32 bytes for each 128 levels, four runs of 32.
INL void put_pairs(const u8 *levels, u8 *to) {
  for (int half = 0; half < 2; half++)
    for (int j = 0; j < 32; j++) {
      const u8 *l = levels + half * 128 + j;
      to[half * 32 + j] = (l[0] & 3) | (l[32] & 3) << 2 | (l[64] & 3) << 4 | (l[96] & 3) << 6;
    }
}

// Bit `bit` of 256 levels: 32 bytes, of which bit r of byte j is that of level 32 · r + j.
INL void put_bits(const u8 *levels, int bit, u8 *to) {
  for (int j = 0; j < 32; j++) {
    u8 bits = 0;
    UNROLL for (int run = 0; run < 8; run++) bits |= (levels[run * 32 + j] >> bit & 1) << run;
    to[j] = bits;
  }
}

// (len, LANES) → (LANES, len)
INL void turn_back(const bytes *levels, int len, u8 *to) {
  for (int j = 0; j < len; j++)
    UNROLL for (int group = 0; group < LANES; group++) to[group * len + j] = levels[j][group];
}

// --- blocks of 32: LANES of them at once, levels low and high nibbles of 16 bytes ---

INL lanes inverse_of(lanes d) { return pick(d == 0, (lanes){}, 1 / d); }
// Negative numbers and NaN become 0.
INL lanes from_zero(lanes x) { return pick(x >= 0, x, (lanes){}); }

// Levels of 4 or 5 bits: the fifth bits of all, then the nibbles.
INL u8 *put_levels(const bytes *levels, int block, int bits, u8 *to) {
  if (bits == 5) {
    u32 fifths = 0;
    for (int j = 0; j < 32; j++) fifths |= (u32)(levels[j][block] >> 4) << j;
    STORE(to, fifths);
    to += 4;
  }
  for (int j = 0; j < 16; j++) to[j] = (levels[j][block] & 15) | levels[j + 16][block] << 4;
  return to + 16;
}

// w = d · (level − middle): the weight of largest magnitude becomes −middle · d.
INL void pack_around(const lanes *x, f32 middle, u8 *to) {
  const lanes d = extreme(x, 32) / -middle, inverse = inverse_of(d);
  bytes levels[32];
  for (int j = 0; j < 32; j++)
    levels[j] = to_bytes(least(all(2 * middle - 1), from_zero(x[j] * inverse + (middle + 0.5f))));
  for (int block = 0; block < LANES; block++)
    to = put_levels(levels, block, middle == 16 ? 5 : 4, put_half(to, d[block]));
}
NOINL void pack_q4_0(const lanes *x, u8 *to) { pack_around(x, 8, to); }
NOINL void pack_q5_0(const lanes *x, u8 *to) { pack_around(x, 16, to); }

// w = d · level + min
INL void pack_above(const lanes *x, f32 max, u8 *to) {
  lanes min = x[0], top = x[0];
  for (int j = 1; j < 32; j++) {
    min = least(min, x[j]);
    top = most(top, x[j]);
  }
  const lanes d = (top - min) / max, inverse = inverse_of(d);
  bytes levels[32];
  for (int j = 0; j < 32; j++) {
    const lanes level = from_zero((x[j] - min) * inverse + 0.5f);
    // 1 / d is infinite: levels become 15, but 0 with five bits, as in ggml's reference
    levels[j] = to_bytes(max == 15 ? least(level, all(max)) : pick(level < 64, level, (lanes){}));
  }
  for (int block = 0; block < LANES; block++)
    to = put_levels(levels, block, max == 31 ? 5 : 4, put_half(put_half(to, d[block]), min[block]));
}
NOINL void pack_q4_1(const lanes *x, u8 *to) { pack_above(x, 15, to); }
NOINL void pack_q5_1(const lanes *x, u8 *to) { pack_above(x, 31, to); }

// Halves round away from zero.
NOINL void pack_q8_0(const lanes *x, u8 *to) {
  lanes size = {};
  for (int j = 0; j < 32; j++) size = most(size, magnitude(x[j]));
  const lanes d = size / 127, inverse = inverse_of(d);
  bytes levels[32];
  for (int j = 0; j < 32; j++) {
    lanes scaled = x[j] * inverse;
    scaled = pick(magnitude(scaled) < 256, scaled, (lanes){}); // else 1 / d is infinite
    const ints whole = CONVERT(scaled, ints);
    const lanes rest = scaled - CONVERT(whole, lanes);
    levels[j] = CONVERT(whole - (rest >= 0.5f) + (rest <= -0.5f), bytes);
  }
  for (int block = 0; block < LANES; block++) {
    to = put_half(to, d[block]);
    for (int j = 0; j < 32; j++) to[j] = levels[j][block];
    to += 32;
  }
}

// --- blocks of 256 ---

typedef struct {
  u8 levels[UNIT_LEN];
  f32 scales[16], mins[16];     // one per group
  u8 whole[16], whole_mins[16]; // the same, quantized
  u16 d, dmin;                  // the units of the last two, as half floats
} Block;

// w ≈ d · scale · level − dmin · minimum
INL void fit_block(const f32 *weights, const MinSearch s, Block *block) {
  const int groups = UNIT_LEN / s.len;
  lanes x[UNIT_LEN / LANES];
  f32 max_scale = 0, max_min = 0;
  for (int first = 0; first < groups; first += LANES) {
    lanes *own = x + first / LANES * s.len, minimum;
    bytes levels[32];
    turn(weights + first * s.len, s.len, own);
    const lanes scale = fit_min(own, s, levels, &minimum);
    turn_back(levels, s.len, block->levels + first * s.len);
    STORE(block->scales + first, scale);
    STORE(block->mins + first, minimum);
  }
  for (int group = 0; group < groups; group++) {
    if (block->scales[group] > max_scale) max_scale = block->scales[group];
    if (block->mins[group] > max_min) max_min = block->mins[group];
  }
  const f32 per_scale = max_scale > 0 ? s.scale_max / max_scale : 0, per_min = max_min > 0 ? s.scale_max / max_min : 0;
  block->d = to_half(max_scale / s.scale_max);
  block->dmin = to_half(max_min / s.scale_max);
  const f32 d = half(block->d), dmin = half(block->dmin);
  for (int first = 0; first < groups; first += LANES) {
    const lanes whole = nearest(per_scale * LOAD(lanes, block->scales + first), 0, s.scale_max);
    const lanes whole_min = nearest(per_min * LOAD(lanes, block->mins + first), 0, s.scale_max);
    STORE(block->whole + first, to_bytes(whole));
    STORE(block->whole_mins + first, to_bytes(whole_min));
    const lanes scale = d * whole, min = dmin * whole_min;
    const ints kept = scale == 0; // levels have no effect there; ggml keeps the search's
    const lanes *own = x + first / LANES * s.len;
    bytes levels[32];
    for (int j = 0; j < s.len; j++) levels[j] = to_bytes(nearest((own[j] + min) / scale, 0, s.max));
    for (int group = 0; group < LANES; group++)
      if (!kept[group])
        for (int j = 0; j < s.len; j++) block->levels[(first + group) * s.len + j] = levels[j][group];
  }
}

INL u8 *put_scales_k4(const Block *block, u8 *to) {
  const u8 *s = block->whole, *m = block->whole_mins;
  STORE(to, block->d);
  STORE(to + 2, block->dmin);
  for (int k = 0; k < 4; k++) {
    to[4 + k] = s[k] | s[k + 4] >> 4 << 6;
    to[8 + k] = m[k] | m[k + 4] >> 4 << 6;
    to[12 + k] = (s[k + 4] & 15) | (m[k + 4] & 15) << 4;
  }
  return to + 16;
}

NOINL void pack_q2_k(const f32 *weights, u8 *to) {
  Block block;
  fit_block(weights, (MinSearch){16, 3, -0.5f, 15, 1, 15}, &block);
  for (int group = 0; group < 16; group++) to[group] = block.whole[group] | block.whole_mins[group] << 4;
  put_pairs(block.levels, to + 16);
  STORE(to + 80, block.d);
  STORE(to + 82, block.dmin);
}
NOINL void pack_q4_k(const f32 *weights, u8 *to) {
  Block block;
  fit_block(weights, (MinSearch){32, 15, -1, 20, 0, 63}, &block);
  put_nibbles(block.levels, put_scales_k4(&block, to));
}
NOINL void pack_q5_k(const f32 *weights, u8 *to) {
  Block block;
  fit_block(weights, (MinSearch){32, 31, -0.5f, 15, 0, 63}, &block);
  to = put_scales_k4(&block, to);
  put_bits(block.levels, 4, to);
  put_nibbles(block.levels, to + 32);
}

// Levels −middle … middle − 1 of groups of 16 for quantized scales: w ≈ d · whole · (level − middle). Where d · whole
// is 0, ggml keeps the levels of the search.
INL void round_levels(const lanes *x, f32 d, const f32 *whole, f32 middle, u8 *to) {
  for (int first = 0; first < 16; first += LANES) {
    const lanes scale = d * LOAD(lanes, whole + first);
    bytes levels[16];
    for (int j = 0; j < 16; j++) {
      const lanes level = nearest(x[first / LANES * 16 + j] / scale, -middle, middle - 1);
      levels[j] = to_bytes(middle + level);
    }
    for (int group = 0; group < LANES; group++)
      if (scale[group] != 0)
        for (int j = 0; j < 16; j++) to[(first + group) * 16 + j] = levels[j][group];
  }
}

NOINL void pack_q3_k(const f32 *weights, u8 *to) {
  lanes x[32];
  u8 levels[UNIT_LEN];
  f32 scales[16], whole[16];
  for (int first = 0; first < 16; first += LANES) {
    bytes found[16];
    turn(weights + first * 16, 16, x + first * 2);
    STORE(scales + first, fit_by_steps(x + first * 2, found));
    turn_back(found, 16, levels + first * 16);
  }
  const f32 largest = extreme_one(scales, 16), per_scale = largest == 0 ? 0 : -32 / largest;
  const u16 d = to_half(per_scale == 0 ? 0 : 1 / per_scale);
  u8 *s = to + 96;
  __builtin_memset(s, 0, 12);
  for (int group = 0; group < 16; group++) {
    whole[group] = per_scale == 0 ? -32 : nearest_one(per_scale * scales[group], -32, 31); // −32 has the bits 0
    const u8 bits = 32 + (int)whole[group];
    s[group & 7] |= (bits & 15) << (group < 8 ? 0 : 4);
    s[8 + (group & 3)] |= bits >> 4 << 2 * (group >> 2);
  }
  STORE(to + 108, d);
  round_levels(x, half(d), whole, 4, levels);
  put_bits(levels, 2, to);
  put_pairs(levels, to + 32);
}

NOINL void pack_q6_k(const f32 *weights, u8 *to) {
  lanes x[32];
  u8 levels[UNIT_LEN];
  f32 scales[16], whole[16];
  for (int first = 0; first < 16; first += LANES) {
    bytes found[16];
    turn(weights + first * 16, 16, x + first * 2);
    STORE(scales + first, fit_scale(x + first * 2, found));
    turn_back(found, 16, levels + first * 16);
  }
  const f32 largest = extreme_one(scales, 16);
  if (__builtin_fabsf(largest) < NOTHING) {
    __builtin_memset(to, 0, 210);
    return;
  }
  const f32 per_scale = -128 / largest;
  const u16 d = to_half(1 / per_scale);
  for (int group = 0; group < 16; group++) {
    whole[group] = nearest_one(per_scale * scales[group], -128, 127);
    to[192 + group] = (u8)(i8)whole[group];
  }
  STORE(to + 208, d);
  round_levels(x, half(d), whole, 32, levels);
  for (int part = 0; part < 2; part++)
    for (int j = 0; j < 32; j++) {
      const u8 *l = levels + part * 128 + j;
      to[part * 64 + j] = (l[0] & 15) | l[64] << 4;
      to[part * 64 + 32 + j] = (l[32] & 15) | l[96] << 4;
      to[128 + part * 32 + j] = l[0] >> 4 | l[32] >> 4 << 2 | l[64] >> 4 << 4 | l[96] >> 4 << 6;
    }
}

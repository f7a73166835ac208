// fit: the searches for the scales and minimums of groups. ggml's make_qkx2_quants, make_qx_quants and make_q3_quants.
#pragma once
#include "lanes.h"

typedef struct {
  int len;       // weights of a group
  int max;       // the highest level; the lowest is 0
  f32 from;      // the first scale spreads a group over max + from levels,
  int steps;     // and each of `steps` further scales over 0.1 levels more
  int absolute;  // errors are weighted by their size, not by its square
  int scale_max; // quantized scales and minimums are 0 … this
} MinSearch;

// The weight of each error: the magnitude of its weight, and that of its group if errors are squared.
INL void weigh(const lanes *x, const MinSearch s, lanes *importance) {
  lanes base = {};
  if (!s.absolute) {
    for (int j = 0; j < s.len; j++) base += x[j] * x[j];
    base = __builtin_elementwise_sqrt(base / (f32)s.len);
  }
  for (int j = 0; j < s.len; j++) importance[j] = base + magnitude(x[j]);
}

// The weighted error of levels. It never decreases, so a lane stops at its limit.
INL lanes error_of(const lanes *x, const lanes *levels, const lanes *importance, lanes scale, lanes min, lanes limit,
                   const MinSearch s) {
  lanes error = {};
  for (int from = 0; from < s.len; from += 8) {
    const ints goes_on = error < limit;
    if (!any(goes_on)) break;
    lanes more = error;
    UNROLL for (int j = from; j < from + 8; j++) {
      const lanes off = scale * levels[j] + min - x[j];
      more += importance[j] * (s.absolute ? magnitude(off) : off * off);
    }
    error = pick(goes_on, more, error);
  }
  return error;
}

// Tries spreads, solves least squares for each, and keeps the one with the smallest error: w ≈ scale · level − minimum.
// Returns the scales.
INL lanes fit_min(const lanes *x, const MinSearch s, bytes *levels, lanes *minimum) {
  lanes importance[32], trial[32];
  weigh(x, s, importance);
  lanes min = x[0], top = x[0], sum_w = importance[0], sum_x = sum_w * x[0];
  for (int j = 1; j < s.len; j++) {
    min = least(min, x[j]);
    top = most(top, x[j]);
    sum_w += importance[j];
    sum_x += importance[j] * x[j];
  }
  min = least(min, (lanes){});
  const ints flat = top == min;
  const lanes flat_min = min;

  lanes spread = (f32)s.max / (top - min), best_spread = spread, best_start = min, scale = 1 / spread;
  for (int j = 0; j < s.len; j++) trial[j] = nearest(spread * (x[j] - min), 0, s.max);
  lanes best = error_of(x, trial, importance, scale, min, all(__builtin_inff()), s);
  for (int step = 0; step <= s.steps; step++) {
    spread = (s.from + STEP * step + s.max) / (top - min); // from the best minimum so far
    lanes sum_l = {}, sum_l2 = {}, sum_xl = {};
    for (int j = 0; j < s.len; j++) {
      trial[j] = nearest(spread * (x[j] - min), 0, s.max);
      const lanes weighted = importance[j] * trial[j];
      sum_l += weighted;
      sum_l2 += weighted * trial[j];
      sum_xl += weighted * x[j];
    }
    const lanes determinant = sum_w * sum_l2 - sum_l * sum_l;
    lanes new_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
    lanes new_min = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
    const ints above = new_min > 0;
    new_min = pick(above, (lanes){}, new_min);
    new_scale = pick(above, sum_xl / sum_l2, new_scale);
    const lanes error = error_of(x, trial, importance, new_scale, new_min, best, s);
    const ints better = (determinant > 0) & (error < best);
    best = pick(better, error, best);
    best_spread = pick(better, spread, best_spread);
    best_start = pick(better, min, best_start);
    scale = pick(better, new_scale, scale);
    min = pick(better, new_min, min);
  }
  for (int j = 0; j < s.len; j++) {
    const lanes level = nearest(best_spread * (x[j] - best_start), 0, s.max);
    levels[j] = to_bytes(pick(flat, (lanes){}, level));
  }
  *minimum = -pick(flat, flat_min, min);
  return pick(flat, (lanes){}, scale);
}

// Groups of 16 with levels −32 … 31: tries 19 spreads, with errors weighted by the square of the weight. Writes levels
// + 32, returns the scales.
INL lanes fit_scale(const lanes *x, bytes *levels) {
  lanes weighted[16];
  for (int j = 0; j < 16; j++) weighted[j] = x[j] * x[j] * x[j];
  const lanes value = extreme(x, 16);
  const ints zeros = magnitude(value) < NOTHING;
  lanes best_spread = {}, scale = {}, best = {};
  for (int step = 0; step < 20; step++) {
    const int offset = step == 0 ? 0 : step - 10; // 0 first, then −9 … 9
    if (step > 0 && offset == 0) continue;
    const lanes spread = -(32 + STEP * offset) / value;
    lanes sum_xl = {}, sum_l2 = {};
    for (int j = 0; j < 16; j++) {
      const lanes level = nearest(spread * x[j], -32, 31);
      sum_xl += weighted[j] * level;
      sum_l2 += x[j] * x[j] * level * level;
    }
    const ints better = step == 0 ? (ints){} - 1 : (sum_l2 > 0) & (sum_xl * sum_xl > best * sum_l2);
    best_spread = pick(better, spread, best_spread);
    scale = pick(better, pick(sum_l2 > 0, sum_xl / sum_l2, (lanes){}), scale);
    best = pick(better, scale * sum_xl, best);
  }
  for (int j = 0; j < 16; j++) {
    const lanes level = 32 + nearest(best_spread * x[j], -32, 31);
    levels[j] = to_bytes(pick(zeros, (lanes){}, level));
  }
  return pick(zeros, (lanes){}, scale);
}

// Groups of 16 with levels −4 … 3: moves levels one at a time while that helps, in at most five rounds. Writes levels +
// 4, returns the scales.
INL lanes fit_by_steps(const lanes *x, bytes *levels) {
  lanes level[16], sum_xl = {}, sum_l2 = {};
  const lanes value = extreme(x, 16), spread = -4 / value;
  const ints zeros = magnitude(value) < NOTHING;
  for (int j = 0; j < 16; j++) {
    level[j] = nearest(spread * x[j], -4, 3);
    sum_xl += x[j] * x[j] * x[j] * level[j];
    sum_l2 += x[j] * x[j] * level[j] * level[j];
  }
  ints moved = ~zeros;
  for (int round = 0; round < 5 && any(moved); round++) {
    moved = (ints){};
    for (int j = 0; j < 16; j++) {
      const lanes weight = x[j] * x[j], weighted = weight * x[j];
      lanes new_xl = sum_xl - weighted * level[j], new_l2 = sum_l2 - weight * level[j] * level[j];
      const lanes target = nearest(x[j] * new_l2 / new_xl, -4, 3);
      ints moves = (new_xl > 0) & (target != level[j]) & ~zeros;
      new_xl += weighted * target;
      new_l2 += weight * target * target;
      moves &= (new_l2 > 0) & (new_xl * new_xl * sum_l2 > sum_xl * sum_xl * new_l2);
      level[j] = pick(moves, target, level[j]);
      sum_xl = pick(moves, new_xl, sum_xl);
      sum_l2 = pick(moves, new_l2, sum_l2);
      moved |= moves;
    }
  }
  for (int j = 0; j < 16; j++) levels[j] = to_bytes(pick(zeros, (lanes){}, level[j] + 4));
  return pick(zeros | ~(sum_l2 > 0), (lanes){}, sum_xl / sum_l2);
}

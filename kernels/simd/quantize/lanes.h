// lanes: eight groups or blocks at once, one in each lane.
//
// ggml adds up a group's weights one after another, and its choice among nearly equal scales depends on the last bit.
// Each lane therefore does what a plain loop over its own group would do: the same operations in the same order, of
// float32 numbers that are never fused. A unit is 256 weights.
#pragma once
#include "../vec.h"

#define LANES 8
#define UNIT_LEN 256

typedef f32 lanes VEC(4 * LANES);
typedef i32 ints VEC(4 * LANES);
typedef u8 bytes VEC(LANES);

#define NOTHING 1e-15f         // a group below this counts as zeros in ggml (GROUP_MAX_EPS)
#define NO_FRACTION 12582912.f // 1.5 · 2^23: a sum with it has no bits left for a fraction
#define STEP 0.1f              // distance between tried scales, in levels

INL lanes all(f32 x) { return x - (lanes){}; }
INL lanes pick(ints where, lanes a, lanes b) { return (lanes)((where & (ints)a) | (~where & (ints)b)); }
INL lanes magnitude(lanes x) { return (lanes)((ints)x & 0x7fffffff); }
INL lanes least(lanes a, lanes b) { return pick(b < a, b, a); } // a if one is NaN
INL lanes most(lanes a, lanes b) { return pick(b > a, b, a); }
#define BOTH4(a, b) SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
INL int any(ints where) {
  i32x4 either = SHUFFLE(where, where, 0, 1, 2, 3) | SHUFFLE(where, where, 4, 5, 6, 7);
  return wasm_v128_any_true((v128_t)either);
}

// The closest integers within low … high, ties to even; NaN becomes low.
INL lanes nearest(lanes x, f32 low, f32 high) {
  const lanes level = (x + NO_FRACTION) - NO_FRACTION;
  return least(most(all(low), level), all(high));
}
INL f32 nearest_one(f32 x, f32 low, f32 high) {
  const f32 level = (x + NO_FRACTION) - NO_FRACTION;
  return level > high ? high : level >= low ? level : low;
}
INL bytes to_bytes(lanes levels) { return CONVERT(CONVERT(levels, ints), bytes); }

// The first value of largest magnitude; 0 if all are 0. The size is kept apart: compared with that of `value`, clang 19
// skips a first value below 0 (-O2).
INL lanes extreme(const lanes *x, int len) {
  lanes value = {}, size = {};
  for (int j = 0; j < len; j++) {
    const lanes own = magnitude(x[j]);
    value = pick(own > size, x[j], value);
    size = pick(own > size, own, size);
  }
  return value;
}
INL f32 extreme_one(const f32 *x, int len) {
  f32 value = 0, size = 0;
  for (int j = 0; j < len; j++) {
    const f32 own = __builtin_fabsf(x[j]);
    value = own > size ? x[j] : value;
    size = own > size ? own : size;
  }
  return value;
}

// (LANES, len) → (len, LANES)
INL void turn(const f32 *x, int len, lanes *to) {
  for (int j = 0; j < len; j += 4) {
    vi low[4], high[4];
    turn_words(x + j, 4 * len, low);
    turn_words(x + 4 * len + j, 4 * len, high);
    UNROLL for (int i = 0; i < 4; i++) to[j + i] = BOTH4((vf)low[i], (vf)high[i]);
  }
}

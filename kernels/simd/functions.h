// functions: exp, tanh, erf and the activations, by the register. Errors of a few units in the last place.
#pragma once
#include "layout.h"
#include "vec.h"

// Cephes, expf. NaN stays NaN.
INL vf exp_within(vf y) {
  vf n = __builtin_elementwise_roundeven(y * 1.44269504f);
  vf r = FMA(n, splat(2.12194440e-4f), FMA(n, splat(-0.693359375f), y));
  vf p = FMA(r, splat(1.9875691500e-4f), splat(1.3981999507e-3f));
  p = FMA(p, r, splat(8.3334519073e-3f));
  p = FMA(p, r, splat(4.1665795894e-2f));
  p = FMA(p, r, splat(1.6666665459e-1f));
  p = FMA(p, r, splat(5.0000001201e-1f));
  p = FMA(p * r, r, r) + 1.0f;
  return p * (vf)((CONVERT(n, vi) + 127) << 23);
}
INL vf vexp(vf x) {
  vf value = exp_within(vmin(vmax(x, splat(-87.3f)), splat(88.0f)));
  vi number = x == x;
  return (vf)(((vi)value & number) | ((vi)x & ~number));
}
// The same for arguments up to 0; NaN stays NaN.
INL vf exp_below(vf x) { return exp_within(vmax(splat(-87.3f), x)); }

// Small arguments by a series: 1 − e^x would lose their digits.
INL vf vtanh(vf x) {
  vf e = vexp(vabs(x) * -2.0f);
  vf large = (1 - e) / (1 + e);
  vf s = x * x;
  vf p = FMA(s, splat(-0.0218694885f), splat(0.0539682540f));
  p = FMA(p, s, splat(-0.1333333333f));
  vf small = FMA(p * s + 0.3333333333f, -s, splat(1.0f)) * vabs(x);
  vi below = vabs(x) < 0.25f;
  vf size = (vf)(((vi)small & below) | ((vi)large & ~below));
  return (vf)((vi)size | ((vi)x & 0x80000000));
}

// About x for small x, and within ±cap.
NOINL vf soft_capped(vf x, f32 cap) { return vtanh(x / cap) * cap; }

// Abramowitz and Stegun 7.1.26: within 1.5e-7
INL vf verf(vf x) {
  vf a = vabs(x);
  vf t = 1 / FMA(a, splat(0.3275911f), splat(1.0f));
  vf p = FMA(t, splat(1.061405429f), splat(-1.453152027f));
  p = FMA(p, t, splat(1.421413741f));
  p = FMA(p, t, splat(-0.284496736f));
  p = FMA(p, t, splat(0.254829592f));
  vf size = 1 - p * t * vexp(-a * a);
  return (vf)((vi)size | ((vi)x & 0x80000000));
}

// Combines gate and up of gpt-oss's MLP.
INL vf swiglu_oai(vf gate, vf up) {
  vf g = vmin(gate, splat(7)), u = vmax(vmin(up, splat(7)), splat(-7));
  return g / (1 + vexp(g * -1.702f)) * (u + 1);
}
// ln(1 + e^x), which is about x for large x.
INL f32 log_of(f32 x);
INL f32 softplus(f32 x) {
  if (!(x <= 20)) return x;
  f32 e = vexp(splat(x))[0];
  return e < 1e-4f ? e - e * e / 2 : log_of(1 + e);
}
// Natural logarithm of a number ≥ 1: of its exponent, plus a series of atanh for the rest.
INL f32 log_of(f32 x) {
  union { f32 f; u32 u; } v = {x};
  int exponent = (int)(v.u >> 23) - 127;
  v.u = (v.u & 0x007fffff) | 0x3f800000;
  if (v.f > 1.41421356f) v.f *= 0.5f, exponent++;
  double z = ((double)v.f - 1) / ((double)v.f + 1), s = z * z;
  return (f32)(exponent * 0.6931471805599453 + 2 * z * (1 + s * (1.0 / 3 + s * (1.0 / 5 + s * (1.0 / 7 + s / 9)))));
}

NOINL vf activate(int act, vf x) {
  switch (act) {
    case ACT_SILU: return x / (1 + vexp(-x));
    case ACT_GELU: return 0.5f * x * (1 + vtanh(0.7978845608f * x * FMA(x * 0.044715f, x, splat(1.0f))));
    case ACT_GELU_ERF: return 0.5f * x * (1 + verf(x * 0.7071067812f));
    case ACT_RELU: return vmax(splat(0), x); // the second argument for NaN
    case ACT_SIGMOID: return 1 / (1 + vexp(-x));
    case ACT_TANH: return soft_capped(x, 1);
    case ACT_SOFTPLUS: {
      for (int i = 0; i < W; i++) x[i] = softplus(x[i]);
      return x;
    }
    case ACT_ELU: return vmax(splat(0), x) + (vexp(vmin(splat(0), x)) - 1);
    default: {
      vf r = vmax(splat(0), x);
      return r * r;
    }
  }
}

// recurrent: steps with a state per sequence. A chunk is one head of all sequences, or some channels; it processes the
// rows of each sequence in order. A row at position 0 begins with a zero state.
#pragma once
#include "../floats.h"
#include "../functions.h"
#include "../pass.h"

#define CHANNELS 64 // channels of a convolution per chunk

// A convolution without a state: rows read neighbours on both sides, so `out` must not be x.
NOINL void centered_conv(Thread *t, const CausalConv *op, int first, int end) {
  const i32 *cells = AT(i32, t->p.cells);
  const int before = (op->taps - 1) / 2;
  for (i64 row = 0; row < t->p.rows; row++) {
    const f32 *x = floats_at(t, op->x) + row * op->n;
    f32 *y = floats_at(t, op->out) + row * op->n;
    for (int c = first; c < end; c++) {
      const f32 *w = AT(f32, op->weight) + (i64)c * op->taps;
      f32 sum = op->bias ? AT(f32, op->bias)[c] : 0;
      for (int j = 0; j < op->taps; j++) {
        const i64 away = j - before, at = row + away;
        if (at < 0 || at >= t->p.rows || cells[at] - cells[row] != away) continue;
        sum = FMA(w[j], x[away * op->n + c], sum);
      }
      y[c] = op->act >= 0 ? activate(op->act, splat(sum))[0] : sum;
    }
  }
}

NOINL void causal_conv_chunk(Thread *t, const CausalConv *op, int chunk) {
  const int first = chunk * CHANNELS, end = MIN(op->n, first + CHANNELS), back = op->taps - 1;
  if (!op->state) return centered_conv(t, op, first, end);
  for (i64 row = 0; row < t->p.rows; row++) {
    const f32 *x = floats_at(t, op->x) + row * op->n;
    f32 *y = floats_at(t, op->out) + row * op->n;
    f32 *state = AT(f32, op->state) + (i64)AT(i32, t->p.slots)[row] * back * op->n;
    const int begins = AT(i32, t->p.cells)[row] == 0;
    for (int c = first; c < end; c++) {
      const f32 *w = AT(f32, op->weight) + (i64)c * op->taps, now = x[c];
      f32 sum = op->bias ? AT(f32, op->bias)[c] : 0;
      for (int j = 0; j < back; j++) {
        f32 *held = state + (i64)j * op->n + c;
        if (begins) *held = 0;
        sum = FMA(w[j], *held, sum);
      }
      sum = FMA(w[back], now, sum);
      for (int j = 0; j + 1 < back; j++) state[(i64)j * op->n + c] = state[(i64)(j + 1) * op->n + c];
      if (back > 0) state[(i64)(back - 1) * op->n + c] = now;
      y[c] = op->act >= 0 ? activate(op->act, splat(sum))[0] : sum;
    }
  }
}

// The gate of some channels of a row, with its bias.
INL vf gate_at(const f32 *gate, const f32 *bias, int c, int some) { return load_some(gate + c, some) + load_some(bias + c, some); }
// Rows that end a block: the mean of its values, weighted by the softmax of their gates in each channel.
NOINL void compress_row(const Compress *op, const f32 *state, i64 cell, const f32 *x, const f32 *gate, f32 *y, int first, int end) {
  const int overlaps = op->width > op->dim, ratio = op->ratio;
  const int terms = overlaps && cell + 1 >= 2 * ratio ? 2 * ratio : ratio;
  vf most[CHANNELS / W], total[CHANNELS / W], sums[CHANNELS / W];
  for (int i = 0; i < CHANNELS / W; i++) most[i] = splat(-__builtin_inff()), total[i] = sums[i] = (vf){};
  for (int turn = 0; turn < 2; turn++)
    for (int back = terms - 1; back >= 0; back--) {
      const i64 at = cell - back;
      const f32 *value = back ? state + at % op->cells * 2 * op->width : x, *score = back ? value + op->width : gate;
      const int own = overlaps && back < ratio ? op->dim : 0;
      const f32 *bias = AT(f32, op->bias) + at % ratio * op->width + own;
      for (int c = first, i = 0; c < end; c += W, i++) {
        const vf g = gate_at(score + own, bias, c, end - c);
        if (turn == 0) {
          most[i] = vmax(g, most[i]);
          continue;
        }
        const vf e = vexp(g - most[i]);
        total[i] += e;
        sums[i] = FMA(e, load_some(value + own + c, end - c), sums[i]);
      }
    }
  for (int c = first, i = 0; c < end; c += W, i++) store_some(y + c, sums[i] / total[i], end - c);
}
NOINL void compress_chunk(Thread *t, const Compress *op, int chunk) {
  const int first = chunk * CHANNELS, end = MIN(op->dim, first + CHANNELS), width = op->width;
  for (i64 row = 0; row < t->p.rows; row++) {
    const f32 *x = floats_at(t, op->x) + row * width, *gate = floats_at(t, op->gate) + row * width;
    const i64 cell = AT(i32, t->p.cells)[row];
    f32 *y = floats_at(t, op->out) + row * op->dim;
    f32 *state = AT(f32, op->state) + (i64)AT(i32, t->p.slots)[row] * op->cells * 2 * width;
    if ((cell + 1) % op->ratio == 0) compress_row(op, state, cell, x, gate, y, first, end);
    else for (int c = first; c < end; c++) y[c] = 0;
    if (op->cells == 0) continue;
    f32 *own = state + cell % op->cells * 2 * width;
    for (int half = 0; half < width; half += op->dim)
      for (int c = half + first; c < half + end; c++) own[c] = x[c], own[width + c] = gate[c];
  }
}

INL f32 dot_of(const f32 *a, const f32 *b, int n) {
  vf all = {};
  int i = 0;
  for (; i + W <= n; i += W) all = FMA(LOAD(vf, a + i), LOAD(vf, b + i), all);
  f32 total = sum(all);
  for (; i < n; i++) total = FMA(a[i], b[i], total);
  return total;
}

NOINL void delta_rule_chunk(Thread *t, const DeltaRule *op, int head) {
  const int dim = op->headDim, keyHead = op->repeat ? head * op->keyHeads / op->heads : head % op->keyHeads;
  const f32 a = AT(f32, op->a)[head];
  f32 decay[1024];
  for (i64 row = 0; row < t->p.rows; row++) {
    const f32 *q = floats_at(t, op->q) + (row * op->keyHeads + keyHead) * dim;
    const f32 *k = floats_at(t, op->k) + (row * op->keyHeads + keyHead) * dim;
    const f32 *v = floats_at(t, op->v) + (row * op->heads + head) * dim;
    const f32 *alpha = floats_at(t, op->alpha) + (row * op->heads + head) * op->alphas;
    const f32 beta = activate(ACT_SIGMOID, splat(floats_at(t, op->beta)[row * op->heads + head]))[0];
    f32 *y = floats_at(t, op->out) + (row * op->heads + head) * dim;
    f32 *state = AT(f32, op->state) + ((i64)AT(i32, t->p.slots)[row] * op->heads + head) * dim * dim;
    const int begins = AT(i32, t->p.cells)[row] == 0;
    for (int i = 0; i < dim; i++) {
      const int at = op->alphas == 1 ? 0 : i;
      if (i > 0 && op->alphas == 1) decay[i] = decay[0];
      else {
        const f32 rate = alpha[at] + AT(f32, op->dt)[head * op->alphas + at];
        const f32 slow = op->bound < 0 ? op->bound * activate(ACT_SIGMOID, splat(a * rate))[0] : a * softplus(rate);
        decay[i] = vexp(splat(slow))[0];
      }
    }
    for (int o = 0; o < dim; o++) {
      f32 *m = state + (i64)o * dim;
      for (int i = 0; i < dim; i++) m[i] = begins ? 0 : m[i] * decay[i];
      const f32 change = beta * (v[o] - dot_of(m, k, dim));
      for (int i = 0; i < dim; i++) m[i] = FMA(change, k[i], m[i]);
      y[o] = op->scale * dot_of(m, q, dim);
    }
  }
}

NOINL void wkv_chunk(Thread *t, const Wkv *op, int head) {
  const int dim = op->headDim, keyHead = head * op->keyHeads / op->heads;
  f32 decay[1024], key[1024];
  for (i64 row = 0; row < t->p.rows; row++) {
    const i64 own = (row * op->heads + head) * dim, shared = (row * op->keyHeads + keyHead) * dim;
    const f32 *r = floats_at(t, op->r) + own, *w = floats_at(t, op->w) + own;
    const f32 *k = floats_at(t, op->k) + shared, *v = floats_at(t, op->v) + shared;
    const f32 *a = op->a ? floats_at(t, op->a) + own : 0, *b = op->a ? floats_at(t, op->b) + own : 0;
    f32 *y = floats_at(t, op->out) + own;
    f32 *state = AT(f32, op->state) + ((i64)AT(i32, t->p.slots)[row] * op->heads + head) * dim * dim;
    const int begins = AT(i32, t->p.cells)[row] == 0;
    for (int i = 0; i < dim; i += W) {
      const vf rate = load_some(w + i, dim - i), kept = load_some(k + i, dim - i);
      const vf g = vexp(op->bound < 0 ? activate(ACT_SIGMOID, rate) * op->bound : -vexp(rate));
      store_some(decay + i, g, dim - i);
      store_some(key + i, op->complement ? kept - kept * g : kept, dim - i);
    }
    for (int o = 0; o < dim; o++) {
      f32 *m = state + (i64)o * dim;
      for (int i = 0; begins && i < dim; i++) m[i] = 0;
      const f32 removed = a ? dot_of(m, a, dim) : 0;
      if (op->early) y[o] = dot_of(m, r, dim);
      for (int i = 0; i < dim; i += W) {
        vf next = FMA(splat(v[o]), load_some(key + i, dim - i), load_some(m + i, dim - i) * load_some(decay + i, dim - i));
        if (a) next = FMA(splat(-removed), load_some(b + i, dim - i), next);
        store_some(m + i, next, dim - i);
      }
      if (!op->early) y[o] = dot_of(m, r, dim);
    }
  }
}

NOINL void selective_scan_chunk(Thread *t, const SelectiveScan *op, int head) {
  const int dim = op->headDim, n = op->stateDim, group = head * op->groups / op->heads;
  const f32 *a = AT(f32, op->a) + (i64)head * op->decays;
  f32 decay[1024];
  for (i64 row = 0; row < t->p.rows; row++) {
    const f32 *x = floats_at(t, op->x) + (row * op->heads + head) * dim;
    const f32 *b = floats_at(t, op->b) + (row * op->groups + group) * n;
    const f32 *c = floats_at(t, op->c) + (row * op->groups + group) * n;
    const f32 delta = softplus(floats_at(t, op->dt)[row * op->heads + head] + AT(f32, op->dtBias)[head]);
    f32 *y = floats_at(t, op->out) + (row * op->heads + head) * dim;
    f32 *state = AT(f32, op->state) + ((i64)AT(i32, t->p.slots)[row] * op->heads + head) * dim * n;
    const int begins = AT(i32, t->p.cells)[row] == 0;
    for (int j = 0; j < n; j++) decay[j] = j > 0 && op->decays == 1 ? decay[0] : vexp(splat(delta * a[j]))[0];
    for (int i = 0; i < dim; i++) {
      f32 *s = state + (i64)i * n, input = delta * x[i];
      for (int j = 0; j < n; j++) s[j] = FMA(begins ? 0 : s[j], decay[j], input * b[j]);
      y[i] = FMA(AT(f32, op->d)[head], x[i], dot_of(s, c, n));
    }
  }
}

// A separate matrix per head, unpacked row by row.
NOINL void head_linear_chunk(Thread *t, const HeadLinear *op, int head) {
  const Matrix *m = &op->matrix;
  const int from = op->transposed ? m->rows : op->n, to = op->transposed ? op->n : m->rows;
  const int rows = rows_of(t, &op->head);
  const f32 scale = m->scales ? AT(f32, m->scales)[head] : 1;
  f32 *weights = (f32 *)t->scratch;
  if (op->transposed && m->rows == 0)
    for (i64 i = 0; i < (i64)rows * to; i++) (floats_at(t, op->out) + (i / to * op->heads + head) * to)[i % to] = 0;
  for (int r = 0; r < m->rows; r++) {
    unpack_floats(m->type, AT(u8, m->data) + head * m->expertBytes + r * m->rowBytes, op->n, AT(i8, m->grid), weights);
    for (i64 row = 0; row < rows; row++) {
      const f32 *x = floats_at(t, op->x) + (row * op->heads + head) * from;
      f32 *y = floats_at(t, op->out) + (row * op->heads + head) * to;
      if (!op->transposed) y[r] = dot_of(weights, x, op->n) * scale;
      else for (int i = 0; i < op->n; i++) y[i] = FMA(weights[i], x[r] * scale, r ? y[i] : 0);
    }
  }
}

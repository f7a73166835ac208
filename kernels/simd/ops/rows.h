// rows: ops that treat every row separately. The thread that has claimed a row runs several consecutive ones on it.
#pragma once
#include "../functions.h"
#include "../interleaved.h"
#include "../pass.h"
#include "../types.h"
#include "../words.h"
#include "kv.h"

INL f32 *row_at(const Thread *t, u64 address, i64 row, int n) { return floats_at(t, address) + row * n; }

INL void pack_to(u64 packed, i64 row, const f32 *x, int n) {
  if (packed) pack_row(AT(u8, packed) + row * PACKED_BYTES(n), x, n);
}

// Decode rows are skipped: they are multiplied as floats.
INL void pack_words_row(Thread *t, const PackWords *op, i64 row) {
  if (row < decode_rows_of(t, &op->head)) return;
  row_words(AT(u8, op->words) + row * WORD_BYTES(op->n), row_at(t, op->x, row, op->n), op->n);
}

INL void embed_row(Thread *t, const Embed *op, i64 row) {
  i32 token = AT(i32, t->p.tokens)[row];
  f32 *y = row_at(t, op->out, row, op->dim);
  if (token == -1 && op->vectorToken < 0) {
    const f32 *x = AT(f32, t->p.input) + row * op->vectorDim;
    for (int i = 0; i < op->dim; i++) y[i] = op->vectorToken == -1 ? x[i] : 0;
    return;
  }
  if (token == -1) token = op->vectorToken;
  const i32 known = token < 0 || token >= op->vocab ? 0 : token;
  const u8 *from = AT(u8, op->table.data) + known * op->table.rowBytes;
  int type = op->table.type;
  if (type & (INTERLEAVED | INTERLEAVED_FLOATS)) {
    interleaved_row(AT(u8, op->table.data), known, op->table.rowBytes, t->scratch);
    from = t->scratch;
    type &= ~(INTERLEAVED | INTERLEAVED_FLOATS);
  }
  unpack_floats(type, from, op->dim, AT(i8, op->table.grid), y);
  const f32 factor = op->scale * (op->table.scales ? *AT(f32, op->table.scales) : 1);
  for (int i = 0; i < op->dim; i++) y[i] *= factor;
}
INL void input_row(Thread *t, const Input *op, i64 row) {
  const f32 *x = AT(f32, t->p.input) + row * op->dim;
  f32 *y = row_at(t, op->out, row, op->dim);
  for (int i = 0; i < op->dim; i++) y[i] = x[i];
}

INL i32 within(i32 at, i32 length);
INL void lookup_row(Thread *t, const Lookup *op, i64 row) {
  const f32 *from = AT(f32, op->values) + (i64)within(AT(i32, t->p.tokens)[row], op->tokens) * op->n;
  f32 *y = row_at(t, op->out, row, op->n);
  for (int i = 0; i < op->n; i++) y[i] = from[i];
}

INL f32 sum_of(const f32 *x, int n) {
  vf all = {};
  int i = 0;
  for (; i + W <= n; i += W) all += LOAD(vf, x + i);
  f32 total = sum(all);
  for (; i < n; i++) total += x[i];
  return total;
}
INL f32 squares_of(const f32 *x, f32 mean, int n) {
  vf all = {};
  int i = 0;
  for (; i + W <= n; i += W) {
    vf d = LOAD(vf, x + i) - mean;
    all = FMA(d, d, all);
  }
  f32 total = sum(all);
  for (; i < n; i++) total += (x[i] - mean) * (x[i] - mean);
  return total;
}
INL void rms_norm_row(Thread *t, const RmsNorm *op, i64 row) {
  const f32 *x = row_at(t, op->x, row, op->n * op->runs);
  f32 *y = row_at(t, op->out, row, op->n * op->runs);
  for (int run = 0; run < op->runs; run++, x += op->n, y += op->n) {
    const f32 squares = squares_of(x, 0, op->n);
    const f32 inverse = inverse_root((op->sum ? squares : squares / op->n) + op->eps);
    const f32 *weight = op->weight ? AT(f32, op->weight) + (i64)(run % op->weightRows) * op->n : 0;
    for (int i = 0; i < op->n; i += W) {
      vf v = load_some(x + i, op->n - i) * inverse;
      if (weight) v *= load_some(weight + i, op->n - i);
      store_some(y + i, v, op->n - i);
    }
  }
  pack_to(op->packed, row, y - op->n * op->runs, op->n * op->runs);
}
INL void layer_norm_row(Thread *t, const LayerNorm *op, i64 row) {
  const f32 *x = row_at(t, op->x, row, op->n * op->runs);
  f32 *y = row_at(t, op->out, row, op->n * op->runs);
  for (int run = 0; run < op->runs; run++, x += op->n, y += op->n) {
    const f32 mean = sum_of(x, op->n) / op->n;
    const f32 inverse = inverse_root(squares_of(x, mean, op->n) / op->n + op->eps);
    const i64 first = (i64)(run % op->weightRows) * op->n;
    const f32 *weight = op->weight ? AT(f32, op->weight) + first : 0, *bias = op->bias ? AT(f32, op->bias) + first : 0;
    for (int i = 0; i < op->n; i += W) {
      vf v = (load_some(x + i, op->n - i) - mean) * inverse;
      if (weight) v = v * load_some(weight + i, op->n - i) + (bias ? load_some(bias + i, op->n - i) : (vf){});
      store_some(y + i, v, op->n - i);
    }
  }
  pack_to(op->packed, row, y - op->n * op->runs, op->n * op->runs);
}

// A valid index of an array of `length`; 0 for an invalid one.
INL i32 within(i32 at, i32 length) { return at < 0 || at >= length ? 0 : at; }
INL void rope_row(Thread *t, const Rope *op, i64 row) {
  const int pairs = op->rotaryDim / 2;
  const i32 *positions = AT(i32, t->p.positions) + row * 3, *axes = AT(i32, op->axes);
  const f32 *cos = AT(f32, op->cos), *sin = AT(f32, op->sin);
  f32 *own = (f32 *)t->scratch;
  if (axes) {
    for (int i = 0; i < pairs; i++) {
      const i64 at = (i64)within(positions[axes[i]], op->positions) * pairs + i;
      own[i] = cos[at];
      own[pairs + i] = sin[at];
    }
    cos = own;
    sin = own + pairs;
  } else {
    const i64 at = (i64)within(positions[0], op->positions) * pairs;
    cos += at;
    sin += at;
  }
  f32 *x = row_at(t, op->x, row, op->dim) + op->at;
  for (int h = 0; h < op->heads; h++, x += op->headDim) {
    if (op->neox) {
      for (int i = 0; i < pairs; i += W) {
        const int some = pairs - i;
        const vf a = load_some(x + i, some), b = load_some(x + pairs + i, some);
        const vf c = load_some(cos + i, some), s = load_some(sin + i, some);
        store_some(x + i, a * c - b * s, some);
        store_some(x + pairs + i, a * s + b * c, some);
      }
    } else {
      for (int i = 0; i < pairs; i++) {
        f32 a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = a * cos[i] - b * sin[i];
        x[2 * i + 1] = a * sin[i] + b * cos[i];
      }
    }
  }
}

// out = act(gate) ⊙ up; without `up` act(gate)
INL void gate_row(Thread *t, const Gate *op, i64 row) {
  const f32 *gate = row_at(t, op->gate, row, op->n), *up = op->up ? row_at(t, op->up, row, op->n) : 0;
  f32 *y = row_at(t, op->out, row, op->n);
  for (int i = 0; i < op->n; i += W) {
    vf g = load_some(gate + i, op->n - i), u = up ? load_some(up + i, op->n - i) : splat(1), v;
    if (op->act == ACT_SWIGLU_OAI) v = swiglu_oai(g, u);
    else if (op->upMax > 0) v = vmin(activate(op->act, g), splat(op->gateMax)) * vmax(vmin(u, splat(op->upMax)), splat(-op->upMax));
    else v = activate(op->act, g) * u;
    store_some(y + i, v, op->n - i);
  }
  pack_to(op->packed, row, y, op->n);
}
INL void add_row(Thread *t, const Add *op, i64 row) {
  const f32 *a = row_at(t, op->a, row, op->n), *b = row_at(t, op->b, row, op->n);
  f32 *y = row_at(t, op->out, row, op->n);
  for (int i = 0; i < op->n; i += W)
    store_some(y + i, load_some(a + i, op->n - i) + load_some(b + i, op->n - i) * op->scale, op->n - i);
}
INL void add_vector_row(Thread *t, const AddVector *op, i64 row) {
  f32 *x = row_at(t, op->x, row, op->n);
  for (int i = 0; i < op->n; i++) x[i] += AT(f32, op->vector)[i];
}
INL void add_given_row(Thread *t, const AddGiven *op, i64 row) {
  if (AT(i32, t->p.tokens)[row] != -1) return;
  f32 *x = row_at(t, op->x, row, op->n);
  const f32 *given = AT(f32, t->p.input) + row * op->vectorDim + op->at;
  for (int i = 0; i < op->n; i++) x[i] += given[i];
}
INL void add_position_row(Thread *t, const AddPosition *op, i64 row) {
  f32 *x = row_at(t, op->x, row, op->n), *place = (f32 *)t->scratch;
  const Matrix *m = &op->table;
  unpack_floats(m->type, AT(u8, m->data) + within(AT(i32, t->p.positions)[row * 3], m->rows) * m->rowBytes, op->n, AT(i8, m->grid), place);
  const f32 factor = m->scales ? *AT(f32, m->scales) : 1;
  for (int i = 0; i < op->n; i++) x[i] += place[i] * factor;
}
INL void position_scale_row(Thread *t, const PositionScale *op, i64 row) {
  f32 *x = row_at(t, op->x, row, op->n);
  const int steps = (int)(((f32)AT(i32, t->p.positions)[row * 3] + op->offset) / op->floorScale);
  const f32 factor = 1 + op->coef * log_of((f32)(steps + 1));
  for (int i = 0; i < op->n; i++) x[i] *= factor;
}
INL void soft_cap_row(Thread *t, const SoftCap *op, i64 row) {
  f32 *x = row_at(t, op->x, row, op->n);
  for (int i = 0; i < op->n; i += W)
    store_some(x + i, soft_capped(load_some(x + i, op->n - i), op->cap), op->n - i);
}
INL void scale_row(Thread *t, const Scale *op, i64 row) {
  f32 *x = row_at(t, op->x, row, op->n);
  for (int i = 0; i < op->n; i++) x[i] *= op->by;
}
INL void take_row(Thread *t, const Take *op, i64 row) {
  const f32 *x = row_at(t, op->x, AT(i32, t->p.wantedRows)[row], op->n);
  f32 *y = row_at(t, op->out, row, op->n);
  for (int i = 0; i < op->n; i++) y[i] = x[i];
}
INL void multiply_row(Thread *t, const Multiply *op, i64 row) {
  const f32 *a = row_at(t, op->a, row, op->n), *b = row_at(t, op->b, row, op->narrow);
  f32 *y = row_at(t, op->out, row, op->n);
  if (op->narrow == op->n) {
    for (int i = 0; i < op->n; i += W) {
      vf v = load_some(b + i, op->n - i);
      if (op->act >= 0) v = activate(op->act, v);
      store_some(y + i, v * load_some(a + i, op->n - i), op->n - i);
    }
    return;
  }
  const int each = op->n / op->narrow;
  for (int k = 0; k < op->narrow; k++) {
    const f32 v = op->act >= 0 ? activate(op->act, splat(b[k]))[0] : b[k];
    for (int i = k * each; i < (k + 1) * each; i++) y[i] = a[i] * v;
  }
}
INL void multiply_vector_row(Thread *t, const MultiplyVector *op, i64 row) {
  f32 *x = row_at(t, op->x, row, op->n);
  const int each = op->n / op->narrow;
  for (int k = 0; k < op->narrow; k++)
    for (int i = k * each; i < (k + 1) * each; i++) x[i] *= AT(f32, op->vector)[k];
}
INL void match_length_row(Thread *t, const MatchLength *op, i64 row) {
  f32 *x = row_at(t, op->x, row, op->n);
  const f32 own = squares_of(x, 0, op->n), other = squares_of(row_at(t, op->like, row, op->likeN), 0, op->likeN);
  const f32 factor = inverse_root(own / other);
  for (int i = 0; i < op->n; i++) x[i] *= factor;
}
INL void keep_largest_row(Thread *t, const KeepLargest *op, i64 row) {
  f32 *x = row_at(t, op->x, row, op->n);
  const f32 mean = sum_of(x, op->n) / op->n, variance = squares_of(x, mean, op->n) / (op->n - 1);
  const f32 least = mean + (variance > 0 ? op->factor * variance * inverse_root(variance) : 0);
  for (int i = 0; i < op->n; i++) x[i] = x[i] > least ? x[i] - least : 0;
}
INL void clamp_row(Thread *t, const Clamp *op, i64 row) {
  f32 *x = row_at(t, op->x, row, op->n);
  for (int i = 0; i < op->n; i++) x[i] = x[i] > op->max ? op->max : x[i] < op->min ? op->min : x[i];
}
INL f32 sigmoid_of(f32 x) { return activate(ACT_SIGMOID, splat(x))[0]; }
// Sinkhorn: alternately makes rows and columns of a matrix of the streams sum to 1.
NOINL void stream_weights_row(Thread *t, const StreamWeights *op, i64 row) {
  const int n = op->streams;
  const f32 *scale = AT(f32, op->scale), *base = AT(f32, op->base), eps = op->eps;
  f32 *x = row_at(t, op->x, row, op->n), *c = x + 2 * n;
  for (int i = 0; i < n; i++) x[i] = sigmoid_of(x[i] * scale[0] + base[i]) + eps;
  if (op->n == n) return;
  for (int i = n; i < 2 * n; i++) x[i] = 2 * sigmoid_of(x[i] * scale[1] + base[i]);
  for (int i = 0; i < n; i++) {
    f32 most = -__builtin_inff(), total = 0, *own = c + i * n;
    for (int j = 0; j < n; j++) {
      own[j] = own[j] * scale[2] + base[2 * n + i * n + j];
      if (!(own[j] <= most)) most = own[j];
    }
    for (int j = 0; j < n; j++) total += own[j] = vexp(splat(own[j] - most))[0];
    for (int j = 0; j < n; j++) own[j] = own[j] / total + eps;
  }
  for (int turn = 1; turn < 2 * op->iterations; turn++) {
    const int to_next = turn % 2 ? n : 1, to_line = turn % 2 ? 1 : n; // columns, then rows
    for (int line = 0; line < n; line++) {
      f32 sum = eps, *own = c + line * to_line;
      for (int i = 0; i < n; i++) sum += own[i * to_next];
      for (int i = 0; i < n; i++) own[i * to_next] /= sum;
    }
  }
}
NOINL void mix_parts_row(Thread *t, const MixParts *op, i64 row) {
  const f32 *x = row_at(t, op->x, row, op->n * op->parts), *weights = row_at(t, op->weights, row, op->weightsN) + op->at;
  f32 *y = row_at(t, op->out, row, op->n * op->outs);
  for (int out = 0; out < op->outs; out++, y += op->n)
    for (int i = 0; i < op->n; i += W) {
      vf sum = {};
      for (int part = 0; part < op->parts; part++)
        sum = FMA(splat(weights[part * op->outs + out]), load_some(x + (i64)part * op->n + i, op->n - i), sum);
      store_some(y + i, sum, op->n - i);
    }
}
INL void slice_row(Thread *t, const Slice *op, i64 row) {
  const f32 *x = row_at(t, op->x, row, op->heads * op->from) + op->at;
  f32 *y = row_at(t, op->out, row, op->heads * op->to);
  for (int h = 0; h < op->heads; h++, x += op->from, y += op->to) for (int i = 0; i < op->to; i++) y[i] = x[i];
}
INL void rotate_row(Thread *t, const Rotate *op, i64 row) {
  const f32 *x = row_at(t, op->x, row, op->n);
  f32 *y = row_at(t, op->out, row, op->heads * op->outDim);
  for (int h = 0; h < op->heads; h++, x += op->stride, y += op->outDim) {
    f32 head[HEAD_MAX];
    for (int i = 0; i < op->filled; i++) head[i] = i < op->dim ? x[i] : 0;
    rotate(head, op->filled, rotated_block(op->filled));
    for (int i = 0; i < op->outDim; i++) y[i] = head[i];
  }
}
INL void join_row(Thread *t, const Join *op, i64 row) {
  const f32 *a = row_at(t, op->a, row, op->heads * op->first), *b = row_at(t, op->b, row, op->heads * op->second);
  f32 *y = row_at(t, op->out, row, op->heads * (op->first + op->second));
  for (int h = 0; h < op->heads; h++) {
    for (int i = 0; i < op->first; i++) *y++ = *a++;
    for (int i = 0; i < op->second; i++) *y++ = *b++;
  }
}

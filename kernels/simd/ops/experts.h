// experts: which experts a row goes to, and which rows an expert gets.
#pragma once
#include "../functions.h"
#include "../pass.h"
#include "linear.h"

// The `used` largest, the first of equals first.
INL void route_row(Thread *t, const Route *op, i64 row) {
  const f32 *logits = AT(f32, op->logits) + row * op->experts;
  i32 *chosen = AT(i32, op->chosen) + row * op->used;
  f32 *shares = AT(f32, op->shares) + row * op->used, *left = (f32 *)t->scratch, most = logits[0], total = 0, sum = 0;
  for (int e = 0; e < op->experts; e++) {
    left[e] = logits[e];
    most = logits[e] > most ? logits[e] : most;
  }
  for (int e = 0; e < op->experts; e++) total += vexp(splat(logits[e] - most))[0];
  for (int k = 0; k < op->used; k++) {
    int best = 0;
    for (int e = 1; e < op->experts; e++) if (left[e] > left[best]) best = e;
    chosen[k] = best;
    shares[k] = vexp(splat(logits[best] - most))[0] / total;
    left[best] = -__builtin_inff();
    sum += shares[k];
  }
  if (sum < 6.103515625e-5f) sum = 6.103515625e-5f; // the smallest normal half keeps the division finite
  for (int k = 0; k < op->used; k++) shares[k] = (op->normalize ? shares[k] / sum : shares[k]) * op->scale;
}

NOINL void group_pairs(Thread *t, const Group *op) {
  const int all = rows_of(t, &op->head) * op->used, decode = decode_rows_of(t, &op->head) * op->used;
  const i32 *chosen = AT(i32, op->chosen);
  i32 *groups = AT(i32, op->groups), *counts = (i32 *)t->scratch, *next = counts + 2 * op->experts;
  for (int i = 0; i < 2 * op->experts; i++) counts[i] = 0;
  for (int i = 0; i < all; i++) counts[2 * chosen[i] + (i >= decode)]++;
  int active = 0, first = 2 + 4 * op->experts;
  for (int e = 0; e < op->experts; e++) {
    const int d = counts[2 * e], p = counts[2 * e + 1];
    if (!d && !p) continue;
    i32 *entry = groups + 2 + 4 * active++;
    entry[0] = e, entry[1] = first, entry[2] = d, entry[3] = p;
    next[2 * e] = first;
    next[2 * e + 1] = first + d;
    first += d + p;
  }
  for (int i = 0; i < all; i++) groups[next[2 * chosen[i] + (i >= decode)]++] = i;
  __atomic_store_n(AT(u64, op->groups), (u64)t->stamp << 32 | (u32)active, __ATOMIC_RELEASE);
}

INL void combine_row(Thread *t, const Combine *op, i64 row) {
  f32 *y = floats_at(t, op->out) + row * op->dim;
  const f32 *x = AT(f32, op->x) + row * op->used * op->dim, *shares = AT(f32, op->shares) + row * op->used;
  for (int i = 0; i < op->dim; i++) y[i] = x[i] * shares[0];
  for (int k = 1; k < op->used; k++)
    for (int i = 0; i < op->dim; i++) y[i] = FMA(x[k * (i64)op->dim + i], shares[k], y[i]);
}

// experts: chooses experts for each row, and groups rows by expert.
#pragma once
#include "../functions.h"
#include "../pass.h"
#include "linear.h"

// Excludes experts outside the groups with the best sums of their two best scores.
INL void keep_groups(const Route *op, f32 *selection) {
  const int size = op->experts / op->groups;
  f32 *sums = selection + op->experts;
  for (int g = 0; g < op->groups; g++) {
    f32 first = -__builtin_inff(), second = first;
    for (int i = g * size; i < (g + 1) * size; i++) {
      if (selection[i] > first) second = first, first = selection[i];
      else if (selection[i] > second) second = selection[i];
    }
    sums[g] = size > 1 ? first + second : first;
  }
  for (int dropped = op->groupsUsed; dropped < op->groups; dropped++) {
    int worst = -1;
    for (int g = 0; g < op->groups; g++) if (sums[g] == sums[g] && (worst < 0 || sums[g] <= sums[worst])) worst = g;
    if (worst < 0) return;
    sums[worst] = __builtin_nanf("");
    for (int i = worst * size; i < (worst + 1) * size; i++) selection[i] = -__builtin_inff();
  }
}
INL f32 largest_of(const f32 *x, int n) {
  f32 most = x[0];
  for (int i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
  return most;
}
// Chooses the `used` best; among equal scores the first one is better.
INL void route_row(Thread *t, const Route *op, i64 row) {
  const f32 *logits = AT(f32, op->logits) + row * op->experts, *bias = AT(f32, op->bias);
  i32 *chosen = AT(i32, op->chosen) + row * op->used;
  f32 *shares = AT(f32, op->shares) + row * op->used;
  f32 *scores = (f32 *)t->scratch, *selection = scores + op->experts, total = 0, sum = 0;
  const f32 most = largest_of(logits, op->experts);
  for (int e = 0; e < op->experts; e++) {
    if (op->score == SCORE_SOFTMAX) total += scores[e] = vexp(splat(logits[e] - most))[0];
    else if (op->score == SCORE_SQRT_SOFTPLUS) scores[e] = __builtin_sqrtf(softplus(logits[e]));
    else scores[e] = op->score == SCORE_SIGMOID ? activate(ACT_SIGMOID, splat(logits[e]))[0] : logits[e];
  }
  for (int e = 0; e < op->experts; e++) {
    if (op->score == SCORE_SOFTMAX) scores[e] /= total;
    selection[e] = scores[e] + (bias ? bias[e] : 0);
  }
  if (op->groups) keep_groups(op, selection);
  for (int k = 0; k < op->used; k++) {
    int best = 0;
    if (op->given) {
      const f32 own = AT(f32, op->given)[row * op->used + k];
      best = own >= 0 && own < op->experts ? (int)own : 0;
    } else for (int e = 1; e < op->experts; e++) if (selection[e] > selection[best]) best = e;
    chosen[k] = best / op->perExpert;
    shares[k] = scores[chosen[k]];
    selection[best] = -__builtin_inff();
  }
  if (op->score == SCORE_SOFTMAX_CHOSEN) {
    const f32 high = largest_of(shares, op->used);
    for (int k = 0; k < op->used; k++) sum += shares[k] = vexp(splat(shares[k] - high))[0];
    for (int k = 0; k < op->used; k++) shares[k] /= sum;
    sum = 0;
  }
  for (int k = 0; k < op->used; k++) sum += shares[k];
  if (sum < 6.103515625e-5f) sum = 6.103515625e-5f; // the smallest normal half keeps the division finite
  for (int k = 0; k < op->used; k++) shares[k] = (op->normalize ? shares[k] / sum : shares[k]) * op->scale;
}
INL void weigh_row(Thread *t, const Weigh *op, i64 row) {
  const f32 *x = floats_at(t, op->x) + row * op->n;
  for (int k = 0; k < op->used; k++) {
    f32 *y = AT(f32, op->out) + (row * op->used + k) * op->n;
    for (int i = 0; i < op->n; i++) y[i] = x[i] * AT(f32, op->shares)[row * op->used + k];
  }
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

// shares: 0 if inputs were weighted
INL void combine_row(Thread *t, const Combine *op, i64 row) {
  f32 *y = floats_at(t, op->out) + row * op->dim;
  const f32 *x = AT(f32, op->x) + row * op->used * op->dim, *shares = op->shares ? AT(f32, op->shares) + row * op->used : 0;
  for (int k = 0; k < op->used; k++, x += op->dim) {
    const f32 share = shares ? shares[k] : 1;
    for (int i = 0; i < op->dim; i += W) {
      const int some = op->dim - i;
      store_some(y + i, FMA(load_some(x + i, some), splat(share), k ? load_some(y + i, some) : (vf){}), some);
    }
  }
}

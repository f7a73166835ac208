// moe_route: chooses the experts of each row, best first, the lower index on a tie, and their shares. Each output of
// the router has a score; its rank is the number of better ones.
//
//   binding 0  logits  storage, read        f32 (rows, outputs)
//   binding 1  bias    storage, read        f32 (outputs), added to scores to rank them; read if has_bias
//   binding 2  choices storage, read_write  u32 (rows, used, 2): expert, and its share as bits of a float
//   binding 3  given   storage, read        f32 (rows, used), outputs that are chosen already; read if has_given
//   binding 4  p       uniform              Params
//   dispatch   (1, rows, 1), 128 threads each; at most 512 outputs and 128 groups
//   oracle     src/engine/backends/cpu/moe.ts; tolerance 3e-6 rel
struct Params {
  outputs: u32,
  used: u32,
  score: u32, // as in lower-moe.ts
  per_expert: u32,
  groups: u32, // 0: none
  groups_used: u32,
  has_bias: u32,
  has_given: u32,
  normalize: u32,
  scale: f32,
}
@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;
@group(0) @binding(2) var<storage, read_write> choices: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> given: array<f32>;
@group(0) @binding(4) var<uniform> p: Params;
//#splice softplus
const WG: u32 = 128u;
const ADDERS: u32 = 16u;
const LOWEST: f32 = -3.4e38;
const SOFTMAX: u32 = 0u;
const SIGMOID: u32 = 1u;
const SOFTMAX_CHOSEN: u32 = 2u;
const SQRT_SOFTPLUS: u32 = 3u;
var<workgroup> scores: array<f32, 512>;
var<workgroup> selection: array<vec4<f32>, 128>; // scores with their bias
var<workgroup> chosen: array<u32, 512>; // outputs
var<workgroup> sums: array<f32, 128>; // per group
var<workgroup> each: array<f32, WG>; // each thread's result
var<workgroup> parts: array<f32, ADDERS>;

/// The maximum or the sum over all threads. Contains barriers.
fn joined(part: f32, greatest: bool, t: u32) -> f32 {
  workgroupBarrier();
  each[t] = part;
  workgroupBarrier();
  if (t < ADDERS) {
    var some = each[t];
    for (var i = t + ADDERS; i < WG; i += ADDERS) { some = select(some + each[i], max(some, each[i]), greatest); }
    parts[t] = some;
  }
  workgroupBarrier();
  var all = parts[0];
  for (var i = 1u; i < ADDERS; i++) { all = select(all + parts[i], max(all, parts[i]), greatest); }
  return all;
}

/// Fills `scores` from a row of logits.
fn score(row: u32, t: u32) {
  var part = LOWEST;
  for (var e = t; e < p.outputs; e += WG) {
    scores[e] = logits[row * p.outputs + e];
    part = max(part, scores[e]);
  }
  if (p.score == SIGMOID) {
    for (var e = t; e < p.outputs; e += WG) { scores[e] = 1.0 / (1.0 + exp(-max(scores[e], -80.0))); }
  }
  if (p.score == SQRT_SOFTPLUS) {
    for (var e = t; e < p.outputs; e += WG) { scores[e] = sqrt(softplus(scores[e])); }
  }
  if (p.score == SOFTMAX) {
    let most = joined(part, true, t);
    part = 0.0;
    for (var e = t; e < p.outputs; e += WG) { part += exp(scores[e] - most); }
    let total = joined(part, false, t);
    for (var e = t; e < p.outputs; e += WG) { scores[e] = exp(scores[e] - most) / total; }
  }
  workgroupBarrier();
}

/// The value that ranks an output. Plain softmax ranks logits, which differ even where their scores are zero.
fn rank_value(row: u32, e: u32) -> f32 {
  if (p.has_bias == 1u) { return scores[e] + bias[e]; }
  if (p.score == SOFTMAX && p.groups == 0u) { return logits[row * p.outputs + e]; }
  return scores[e];
}

/// Fills `sums`: of each group the two best scores with their bias.
fn sum_groups(t: u32) {
  let size = p.outputs / p.groups;
  for (var g = t; g < p.groups; g += WG) {
    var best = vec2<f32>(LOWEST);
    for (var e = g * size; e < (g + 1u) * size; e++) {
      let score = selection[e / 4u][e % 4u];
      if (score > best.x) { best = vec2<f32>(score, best.x); } else { best.y = max(best.y, score); }
    }
    sums[g] = best.x + select(best.y, 0.0, size == 1u);
  }
}

/// Returns whether the group of an output is one of the best.
fn is_kept(e: u32) -> bool {
  let own = min(e / (p.outputs / p.groups), p.groups - 1u);
  var before = 0u;
  for (var g = 0u; g < p.groups; g++) {
    before += select(0u, 1u, sums[g] > sums[own] || (sums[g] == sums[own] && g < own));
  }
  return before < p.groups_used;
}

/// The number of outputs that rank before e.
fn place_of(e: u32) -> u32 {
  let own = vec4<f32>(selection[e / 4u][e % 4u]);
  var before = vec4<u32>();
  for (var i = 0u; i < p.outputs; i += 4u) {
    let others = selection[i / 4u];
    let lower = vec4<u32>(i, i + 1u, i + 2u, i + 3u) < vec4<u32>(e);
    before += select(vec4<u32>(), vec4<u32>(1u), (others > own) | ((others == own) & lower));
  }
  return before.x + before.y + before.z + before.w;
}

/// Fills `chosen`. Four such scores belong to one thread, because writes of one component may touch all.
fn choose(row: u32, t: u32) {
  for (var i = t; 4u * i < p.outputs; i += WG) {
    var four = vec4<f32>(LOWEST);
    for (var j = 0u; j < 4u && 4u * i + j < p.outputs; j++) { four[j] = rank_value(row, 4u * i + j); }
    selection[i] = four;
  }
  for (var j = t; j < p.used; j += WG) { chosen[j] = 0u; } // if logits are NaN, some places stay unset
  workgroupBarrier();
  if (p.groups > 0u) {
    sum_groups(t);
    workgroupBarrier();
    for (var i = t; 4u * i < p.outputs; i += WG) {
      for (var j = 0u; j < 4u; j++) { if (!is_kept(4u * i + j)) { selection[i][j] = LOWEST; } }
    }
    workgroupBarrier();
  }
  for (var e = t; e < p.outputs; e += WG) {
    let place = place_of(e);
    if (place < p.used) { chosen[place] = e; }
  }
  workgroupBarrier();
}

/// The score of a choice.
fn chosen_score(j: u32) -> f32 {
  return scores[chosen[j] / p.per_expert];
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  score(group.y, t);
  if (p.has_given == 1u) {
    let last = f32(p.outputs - 1u);
    for (var j = t; j < p.used; j += WG) { chosen[j] = u32(clamp(given[group.y * p.used + j], 0.0, last)); }
    workgroupBarrier();
  } else {
    choose(group.y, t);
  }
  let late = p.score == SOFTMAX_CHOSEN;
  var most = LOWEST;
  for (var j = 0u; j < p.used; j++) { most = max(most, chosen_score(j)); }
  var sum = 0.0;
  for (var j = 0u; j < p.used; j++) { sum += select(chosen_score(j), exp(chosen_score(j) - most), late); }
  // Softmax of the chosen divides by their sum in any case. The smallest normal float16 keeps the division finite
  // (build_moe_ffn, llama-graph.cpp).
  let by = select(p.scale, p.scale / max(sum, 6.103515625e-5), p.normalize == 1u || late);
  for (var j = t; j < p.used; j += WG) {
    let share = select(chosen_score(j), exp(chosen_score(j) - most), late) * by;
    choices[group.y * p.used + j] = vec2<u32>(chosen[j] / p.per_expert, bitcast<u32>(share));
  }
}

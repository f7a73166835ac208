// route: the `used` largest of softmax(logits) of a row, best first, the lower index on a tie, spliced into the kernels
// that choose experts. Each expert's rank is the number of better experts.
const EXPERTS_MAX: u32 = 512u;
const LOWEST: f32 = -3.4e38;
var<workgroup> row_logits: array<vec4<f32>, EXPERTS_MAX / 4u>;
var<workgroup> chosen: array<u32, EXPERTS_MAX>;
var<workgroup> each: array<f32, WG>; // each thread's result

fn row_logit(e: u32) -> f32 {
  return row_logits[e / 4u][e % 4u];
}

/// The maximum or the sum over all threads. Contains a barrier before and after.
fn joined(part: f32, greatest: bool, t: u32) -> f32 {
  workgroupBarrier();
  each[t] = part;
  workgroupBarrier();
  var all = each[0];
  for (var i = 1u; i < WG; i++) { all = select(all + each[i], max(all, each[i]), greatest); }
  workgroupBarrier();
  return all;
}

/// The number of experts that rank before e.
fn place_of(e: u32, experts: u32) -> u32 {
  let own = vec4<f32>(row_logit(e));
  var before = vec4<u32>();
  for (var i = 0u; i < experts; i += 4u) {
    let others = row_logits[i / 4u];
    let lower = vec4<u32>(i, i + 1u, i + 2u, i + 3u) < vec4<u32>(e);
    before += select(vec4<u32>(), vec4<u32>(1u), (others > own) | ((others == own) & lower));
  }
  return before.x + before.y + before.z + before.w;
}

/// Fills `chosen` for a row of logits.
fn choose(row: u32, experts: u32, used: u32, t: u32) {
  for (var i = t; i < (experts + 3u) / 4u; i += WG) {
    var four = vec4<f32>(LOWEST);
    for (var j = 0u; j < 4u; j++) {
      if (4u * i + j < experts) { four[j] = logits[row * experts + 4u * i + j]; }
    }
    row_logits[i] = four;
  }
  for (var j = t; j < used; j += WG) { chosen[j] = 0u; } // if logits are NaN, some places stay unset
  workgroupBarrier();
  for (var e = t; e < experts; e += WG) {
    let place = place_of(e, experts);
    if (place < used) { chosen[place] = e; }
  }
  workgroupBarrier();
}

/// After `choose`: the maximum logit, and the factor that turns exp(logit − maximum) into a share of p.scale.
fn weigh(experts: u32, used: u32, t: u32) -> vec2<f32> {
  var part = LOWEST;
  for (var e = t; e < experts; e += WG) { part = max(part, row_logit(e)); }
  let most = joined(part, true, t);
  part = 0.0;
  for (var e = t; e < experts; e += WG) { part += exp(row_logit(e) - most); }
  let total = joined(part, false, t);
  var sum = 0.0;
  for (var j = 0u; j < used; j++) { sum += exp(row_logit(chosen[j]) - most) / total; }
  // The smallest normal float16 keeps the division finite (build_moe_ffn, llama-graph.cpp).
  let by = select(p.scale, p.scale / max(sum, 6.103515625e-5), p.normalize == 1u);
  return vec2<f32>(most, by / total);
}

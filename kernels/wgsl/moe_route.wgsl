// moe_route: the `used` largest of softmax(logits) of each row, best first, the lower index on a tie.
//
//   binding 0  logits  storage, read        f32 (rows, experts)
//   binding 1  ids     storage, read_write  u32 (rows, used)
//   binding 2  shares  storage, read_write  f32 (rows, used)
//   binding 3  p       uniform              Params
//   dispatch   (1, rows, 1), one thread each: some hundred experts at most
//   oracle     src/backend/cpu/ops.ts moe; tolerance 3e-6 rel
struct Params { experts: u32, used: u32, normalize: u32, scale: f32 }
@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> ids: array<u32>;
@group(0) @binding(2) var<storage, read_write> shares: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) group: vec3<u32>) {
  let base = group.y * p.experts;
  let chosen = group.y * p.used;
  var most = logits[base];
  for (var e = 1u; e < p.experts; e++) { most = max(most, logits[base + e]); }
  var total = 0.0;
  for (var e = 0u; e < p.experts; e++) { total += exp(logits[base + e] - most); }
  var sum = 0.0;
  for (var j = 0u; j < p.used; j++) {
    // The next best comes after the last in the order (logit descending, index ascending).
    var best = 0u;
    var found = false;
    for (var e = 0u; e < p.experts; e++) {
      var taken = false;
      for (var i = 0u; i < j; i++) { taken = taken || ids[chosen + i] == e; }
      if (!taken && (!found || logits[base + e] > logits[base + best])) {
        best = e;
        found = true;
      }
    }
    ids[chosen + j] = best;
    let share = exp(logits[base + best] - most) / total;
    shares[chosen + j] = share;
    sum += share;
  }
  // The smallest normal float16 keeps the division finite (build_moe_ffn, llama-graph.cpp).
  let by = select(p.scale, p.scale / max(sum, 6.103515625e-5), p.normalize == 1u);
  for (var j = 0u; j < p.used; j++) { shares[chosen + j] *= by; }
}

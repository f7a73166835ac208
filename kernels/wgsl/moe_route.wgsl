// moe_route: the `used` largest of softmax(logits) of each row, best first, the lower index on a tie. Each expert's
// place is the number of those that come before it.
//
//   binding 0  logits  storage, read        f32 (rows, experts)
//   binding 1  ids     storage, read_write  u32 (rows, used)
//   binding 2  shares  storage, read_write  f32 (rows, used)
//   binding 3  p       uniform              Params
//   dispatch   (1, rows, 1), 64 threads each; at most 1,024 experts
//   oracle     src/backend/cpu/ops.ts moe; tolerance 3e-6 rel
struct Params { experts: u32, used: u32, normalize: u32, scale: f32 }
@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> ids: array<u32>;
@group(0) @binding(2) var<storage, read_write> shares: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;
const WG: u32 = 64u;
var<workgroup> values: array<f32, 1024>;
var<workgroup> chosen: array<u32, 1024>;
var<workgroup> parts: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  var part = -1e30;
  for (var e = t; e < p.experts; e += WG) {
    values[e] = logits[group.y * p.experts + e];
    part = max(part, values[e]);
  }
  for (var j = t; j < p.used; j += WG) { chosen[j] = 0u; } // where logits are NaN, some places stay as they are
  parts[t] = part;
  workgroupBarrier();
  var most = parts[0];
  for (var i = 1u; i < WG; i++) { most = max(most, parts[i]); }
  workgroupBarrier();
  part = 0.0;
  for (var e = t; e < p.experts; e += WG) {
    part += exp(values[e] - most);
    var place = 0u;
    for (var other = 0u; other < p.experts; other++) {
      let before = values[other] > values[e] || (values[other] == values[e] && other < e);
      place += select(0u, 1u, before);
    }
    if (place < p.used) { chosen[place] = e; }
  }
  parts[t] = part;
  workgroupBarrier();
  var total = 0.0;
  for (var i = 0u; i < WG; i++) { total += parts[i]; }
  var sum = 0.0;
  for (var j = 0u; j < p.used; j++) { sum += exp(values[chosen[j]] - most) / total; }
  // The smallest normal float16 keeps the division finite (build_moe_ffn, llama-graph.cpp).
  let by = select(p.scale, p.scale / max(sum, 6.103515625e-5), p.normalize == 1u);
  for (var j = t; j < p.used; j += WG) {
    ids[group.y * p.used + j] = chosen[j];
    shares[group.y * p.used + j] = exp(values[chosen[j]] - most) / total * by;
  }
}

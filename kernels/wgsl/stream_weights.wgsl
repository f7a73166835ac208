// stream_weights: the weights between n streams and a block, in place: n for reading, and perhaps n for writing and an
// (n, n) matrix, whose rows are softmaxes, and whose columns and rows are then made to sum to 1 alternately (Sinkhorn).
// Each thread has a row or a column.
//
//   binding 0  x       storage, read_write  f32 (rows, dim): dim is n, or n · (n + 2)
//   binding 1  vectors storage, read        f32: the scale of each part, from `base` on (dim)
//   binding 2  p       uniform              Params
//   dispatch   (1, rows, 1), 64 threads each; n at most 32
//   oracle     src/engine/backends/cpu/streams.ts streamWeights; tolerance 1e-6 abs + 1e-5 rel
struct Params { dim: u32, streams: u32, base: u32, iterations: u32, eps: f32 }
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read> vectors: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;
var<workgroup> mixed: array<f32, 1024>;

/// Value `i` of a row, scaled as a value of a part, and moved.
fn moved(row: u32, part: u32, i: u32) -> f32 {
  return x[row * p.dim + i] * vectors[part] + vectors[p.base + i];
}
fn sigmoid(v: f32) -> f32 { return 1.0 / (1.0 + exp(-max(v, -80.0))); }

/// Fills a row of the matrix.
fn soften(row: u32, line: u32) {
  let n = p.streams;
  var most = -3.4e38;
  for (var i = 0u; i < n; i++) {
    mixed[line * n + i] = moved(row, 2u, (2u + line) * n + i);
    most = max(most, mixed[line * n + i]);
  }
  var total = 0.0;
  for (var i = 0u; i < n; i++) {
    mixed[line * n + i] = exp(mixed[line * n + i] - most);
    total += mixed[line * n + i];
  }
  for (var i = 0u; i < n; i++) { mixed[line * n + i] = mixed[line * n + i] / total + p.eps; }
}

/// Divides `streams` values, `step` apart, by their sum.
fn divide(first: u32, step: u32) {
  var sum = p.eps;
  for (var i = 0u; i < p.streams; i++) { sum += mixed[first + i * step]; }
  for (var i = 0u; i < p.streams; i++) { mixed[first + i * step] /= sum; }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let n = p.streams;
  let base = group.y * p.dim;
  if (t < n) { x[base + t] = sigmoid(moved(group.y, 0u, t)) + p.eps; }
  if (p.dim == n) { return; }
  if (t < n) {
    x[base + n + t] = 2.0 * sigmoid(moved(group.y, 1u, n + t));
    soften(group.y, t);
  }
  workgroupBarrier();
  for (var turn = 0u; turn < p.iterations; turn++) {
    if (turn > 0u && t < n) { divide(t * n, 1u); }
    workgroupBarrier();
    if (t < n) { divide(t, n); }
    workgroupBarrier();
  }
  if (t >= n) { return; }
  for (var i = 0u; i < n; i++) { x[base + (2u + i) * n + t] = mixed[i * n + t]; }
}

// keep_largest: x = max(0, x − mean − factor · deviation) over each row, with the sample standard deviation, one row
// per workgroup.
//
//   binding 0  x      storage, read_write  f32 (rows, dim)
//   binding 1  p      uniform              Params
//   dispatch   (1, rows, 1), 64 threads each
//   oracle     src/engine/backends/cpu/ops.ts keepLargest; tolerance 1e-5 abs + 1e-5 rel
struct Params { dim: u32, factor: f32 }
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<uniform> p: Params;
const WG: u32 = 64u;
var<workgroup> sums: array<f32, 64>;
var<workgroup> squares: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let base = group.y * p.dim;
  var sum = 0.0;
  for (var i = t; i < p.dim; i += WG) { sum += x[base + i]; }
  sums[t] = sum;
  workgroupBarrier();
  var total = 0.0;
  for (var i = 0u; i < WG; i++) { total += sums[i]; }
  let mean = total / f32(p.dim);
  var square = 0.0;
  for (var i = t; i < p.dim; i += WG) { square += (x[base + i] - mean) * (x[base + i] - mean); }
  squares[t] = square;
  workgroupBarrier();
  total = 0.0;
  for (var i = 0u; i < WG; i++) { total += squares[i]; }
  let least = mean + p.factor * sqrt(total / f32(p.dim - 1u));
  for (var i = t; i < p.dim; i += WG) { x[base + i] = max(0.0, x[base + i] - least); }
}

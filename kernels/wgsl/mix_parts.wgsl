// mix_parts: each part of y is a weighted sum of the parts of x, with weights of the row.
//
//   binding 0  x       storage, read        f32 (rows, parts · length)
//   binding 1  weights storage, read        f32 (rows, stride); the row's begin at `first`, (parts, outs)
//   binding 2  y       storage, read_write  f32 (rows, outs · length)
//   binding 3  p       uniform              Params
//   dispatch   (ceil(outs · length / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/streams.ts mixParts; tolerance 1e-6 abs + 1e-5 rel
struct Params { length: u32, parts: u32, outs: u32, stride: u32, first: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.outs * p.length) { return; }
  let own = id.y * p.stride + p.first + id.x / p.length;
  let from_part = id.y * p.parts * p.length + id.x % p.length;
  var sum = 0.0;
  for (var i = 0u; i < p.parts; i++) { sum += weights[own + i * p.outs] * x[from_part + i * p.length]; }
  y[id.y * p.outs * p.length + id.x] = sum;
}

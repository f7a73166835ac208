// centered_conv: a depthwise convolution over a row and its neighbours on both sides in the run; rows outside of the
// sequence are zeros.
//
//   binding 0  x       storage, read        f32 (rows, channels)
//   binding 1  weights storage, read        f32 (channels, taps), then a bias if has_bias
//   binding 2  batch   storage, read        see batch.ts
//   binding 3  y       storage, read_write  f32 (rows, channels)
//   binding 4  p       uniform              Params
//   dispatch   (ceil(channels / 64), rows, 1), 64 threads of one channel each
//   oracle     src/engine/backends/cpu/recurrent.ts centeredConv; tolerance 1e-6 abs + 1e-5 rel
struct Params { channels: u32, taps: u32, has_bias: u32, acts: u32, kind: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> p: Params;
//#splice activation

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= p.channels) { return; }
  let reach = batch[2u + 3u * id.y]; // first row of the sequence, end
  let before = (p.taps - 1u) / 2u;
  var sum = 0.0;
  if (p.has_bias == 1u) { sum = weights[p.channels * p.taps + i]; }
  for (var j = 0u; j < p.taps; j++) {
    let source = id.y + j; // `before` more than the source row's index, which may be negative
    if (source < reach.x + before || source >= reach.y + before) { continue; }
    sum += weights[i * p.taps + j] * x[(source - before) * p.channels + i];
  }
  if (p.acts == 1u) { sum = activate(p.kind, sum); }
  y[id.y * p.channels + i] = sum;
}

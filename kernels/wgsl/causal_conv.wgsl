// causal_conv: a depthwise convolution over a row and the `taps − 1` before it, which a sequence keeps of its last run.
// Only the first workgroup of a sequence touches what is kept: it computes the rows that need the previous run, then
// writes what the next run needs.
//
//   binding 0  x       storage, read        f32 (rows, channels)
//   binding 1  weights storage, read        f32 (channels, taps), then a bias if has_bias
//   binding 2  batch   storage, read        see batch.ts
//   binding 3  state   storage, read_write  f32 (slots, taps − 1, channels)
//   binding 4  y       storage, read_write  f32 (rows, channels)
//   binding 5  p       uniform              Params
//   dispatch   (ceil(channels / 64), rows, 1), 64 threads of one channel each
//   oracle     src/engine/backends/cpu/recurrent.ts causalConv; tolerance 1e-6 abs + 1e-5 rel
struct Params { channels: u32, taps: u32, has_bias: u32, acts: u32, kind: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> state: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<uniform> p: Params;
//#splice activation

/// A sequence's rows in this run.
struct Sequence { first: u32, count: u32, slot: u32, is_new: bool }

/// The value of a channel `back` rows before the sequence's row `at`; negative rows belong to the previous run.
fn value_at(sequence: Sequence, i: u32, at: u32, back: u32) -> f32 {
  if (back <= at) { return x[(sequence.first + at - back) * p.channels + i]; }
  if (sequence.is_new) { return 0.0; }
  return state[(sequence.slot * (p.taps - 1u) + p.taps - 1u + at - back) * p.channels + i];
}

fn compute(sequence: Sequence, i: u32, at: u32) {
  var sum = 0.0;
  if (p.has_bias == 1u) { sum = weights[p.channels * p.taps + i]; }
  for (var j = 0u; j < p.taps; j++) {
    sum += weights[i * p.taps + j] * value_at(sequence, i, at, p.taps - 1u - j);
  }
  if (p.acts == 1u) { sum = activate(p.kind, sum); }
  y[(sequence.first + at) * p.channels + i] = sum;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= p.channels) { return; }
  let reach = batch[2u + 3u * id.y]; // first row of the sequence, end
  let start = batch[1u + 3u * reach.x]; // token, slot, cell
  let count = min(reach.y, batch[0].x) - reach.x;
  let sequence = Sequence(reach.x, count, start.y, start.z == 0u);
  let at = id.y - reach.x;
  let kept = p.taps - 1u;
  if (at >= max(kept, 1u)) { compute(sequence, i, at); }
  if (at > 0u) { return; }
  for (var row = 0u; row < min(count, max(kept, 1u)); row++) { compute(sequence, i, row); }
  for (var j = 0u; j < kept; j++) {
    state[(start.y * kept + j) * p.channels + i] = value_at(sequence, i, count - 1u, kept - 1u - j);
  }
}

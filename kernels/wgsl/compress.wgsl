// compress: rows that end a block of positions get its mean, weighted by a softmax in each channel; others get zeros. A
// sequence keeps x and gate of its last rows, each at its cell modulo `kept`. Only the first workgroup of a sequence
// touches them: it computes the rows that need the previous run, then writes what the next run needs.
//
//   binding 0  x     storage, read        f32 (rows, width): with overlap the first half belongs to the next block
//   binding 1  gate  storage, read        f32 (rows, width)
//   binding 2  bias  storage, read        f32 (ratio, width)
//   binding 3  batch storage, read        see batch.ts
//   binding 4  state storage, read_write  f32 (slots, kept, 2 · width)
//   binding 5  y     storage, read_write  f32 (rows, dim)
//   binding 6  p     uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one channel each
//   oracle     src/engine/backends/cpu/compressed.ts compress; tolerance 2e-5 abs + 2e-4 rel
struct Params { dim: u32, width: u32, ratio: u32, kept: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> gate: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> state: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(6) var<uniform> p: Params;

/// A sequence's rows in this run.
struct Sequence { first: u32, count: u32, slot: u32, cell: u32 }

/// Gate and value of a channel `back` rows before the sequence's row `at`; negative rows belong to the previous run.
fn term_of(sequence: Sequence, i: u32, at: u32, back: u32) -> vec2<f32> {
  let cell = sequence.cell + at - back;
  let added = bias[cell % p.ratio * p.width + i];
  if (back <= at) {
    let from_row = (sequence.first + at - back) * p.width + i;
    return vec2<f32>(gate[from_row] + added, x[from_row]);
  }
  let from_state = (sequence.slot * p.kept + cell % p.kept) * 2u * p.width + i;
  return vec2<f32>(state[from_state + p.width] + added, state[from_state]);
}

fn compute(sequence: Sequence, i: u32, at: u32) {
  let end = sequence.cell + at + 1u;
  let overlaps = p.width > p.dim;
  let ends = end % p.ratio == 0u;
  let terms = select(p.ratio, 2u * p.ratio, overlaps && end >= 2u * p.ratio);
  var most = -3.4e38;
  var total = 0.0;
  var sum = 0.0;
  for (var n = select(0u, terms, ends); n > 0u; n--) {
    let channel = select(i, i + p.dim, overlaps && n <= p.ratio);
    let term = term_of(sequence, channel, at, n - 1u);
    let peak = max(most, term.x);
    let kept = exp(most - peak);
    let share = exp(term.x - peak);
    total = total * kept + share;
    sum = sum * kept + share * term.y;
    most = peak;
  }
  y[(sequence.first + at) * p.dim + i] = select(0.0, sum / total, ends);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= p.dim) { return; }
  let reach = batch[2u + 3u * id.y]; // first row of the sequence, end
  let start = batch[1u + 3u * reach.x]; // token, slot, cell
  let count = min(reach.y, batch[0].x) - reach.x;
  let sequence = Sequence(reach.x, count, start.y, start.z);
  let at = id.y - reach.x;
  if (at >= max(p.kept, 1u)) { compute(sequence, i, at); }
  if (at > 0u) { return; }
  for (var row = 0u; row < min(count, max(p.kept, 1u)); row++) { compute(sequence, i, row); }
  for (var row = count - min(count, p.kept); row < count; row++) {
    let to = (start.y * p.kept + (start.z + row) % p.kept) * 2u * p.width;
    let own = (reach.x + row) * p.width;
    for (var half = i; half < p.width; half += p.dim) {
      state[to + half] = x[own + half];
      state[to + p.width + half] = gate[own + half];
    }
  }
}

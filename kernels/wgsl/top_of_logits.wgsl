// top_of_logits: the `keep` best of every 1,024 logits of a row, best first. Excludes masked tokens; NaN and infinity
// rank before everything, so that they are detected.
//
//   binding 0  logits   storage, read        u32 (wanted rows, vocab), the bits of f32
//   binding 1  requests storage, read        u32, see candidates.ts
//   binding 2  y        storage, read_write  vec2 of rising bits and id, (rows, y_stride), from y_first
//   binding 3  p        uniform              Params
//   dispatch   (ceil(vocab / 1024), rows with a request, 1), 256 threads each
//   oracle     test/engine/text/sampling/top-k.ts topKOf; tolerance 0
struct Params { vocab: u32, request_words: u32, keep: u32, y_stride: u32, y_first: u32 }
@group(0) @binding(0) var<storage, read> logits: array<u32>;
@group(0) @binding(1) var<storage, read> requests: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<vec2<u32>>;
@group(0) @binding(3) var<uniform> p: Params;
//#splice best
// As in mask_tokens.
const MARK: u32 = 0xffa7a9a7u;

/// The token in the form that `keep_best` compares. Reads bits, never floats: a compiler may assume that there is no
/// NaN.
fn token(bits: u32, id: u32) -> vec2<u32> {
  if (bits == MARK) { return NONE; }
  if ((bits & 0x7f800000u) == 0x7f800000u) { return vec2<u32>(0xffffffffu, id); }
  if (bits == 0x80000000u) { return vec2<u32>(0x80000000u, id); } // −0 equals 0
  return vec2<u32>(select(bits ^ 0x80000000u, ~bits, bits >= 0x80000000u), id);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let row = requests[group.y * p.request_words] * p.vocab;
  for (var i = t; i < LEN; i += WG) {
    let id = group.x * LEN + i;
    tokens[i] = NONE;
    if (id < p.vocab) { tokens[i] = token(logits[row + id], id); }
  }
  keep_best(p.keep, t);
  if (t < p.keep) { y[group.y * p.y_stride + p.y_first + group.x * p.keep + t] = tokens[t]; }
}

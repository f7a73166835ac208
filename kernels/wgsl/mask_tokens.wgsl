// mask_tokens: masks tokens in the rows of logits: their bits go to the result, and a mark replaces them. A row has
// every id at most once.
//
//   binding 0  logits   storage, read_write  u32 (wanted rows, vocab), the bits of f32
//   binding 1  requests storage, read        u32, see candidates.ts
//   binding 2  answers  storage, read_write  u32, see candidates.ts
//   binding 3  p        uniform              Params
//   dispatch   (MASKED_MAX / 64, rows with a request, 1), 64 threads of one id each
//   oracle     test/engine/text/sampling/top-k.ts topKOf; tolerance 0
struct Params { vocab: u32, request_words: u32, answer_words: u32, masked_max: u32 }
@group(0) @binding(0) var<storage, read_write> logits: array<u32>;
@group(0) @binding(1) var<storage, read> requests: array<u32>;
@group(0) @binding(2) var<storage, read_write> answers: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;
// A signalling NaN: no arithmetic makes one.
const MARK: u32 = 0xffa7a9a7u;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let request = id.y * p.request_words;
  let count = requests[request + 1u];
  if (id.x >= count) { return; }
  let at = requests[request] * p.vocab + requests[request + 2u + id.x];
  answers[id.y * p.answer_words + p.masked_max - count + id.x] = logits[at];
  logits[at] = MARK;
}

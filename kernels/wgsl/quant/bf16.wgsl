// bf16: the upper halves of float32 weights, taken eight at a time. Layout: 2 bytes each; a row may begin in the middle
// of a word.
const BLOCK_LEN: u32 = 8u;
const BLOCK_BYTES: u32 = 16u;

fn pair_at(i: u32) -> vec2<f32> {
  let word = word_at(i);
  return bitcast<vec2<f32>>(vec2<u32>(word << 16u, word & 0xffff0000u));
}

fn dequant8(block: u32, at: u32) -> Eight {
  let i = block + 2u * at;
  return Eight(vec4<f32>(pair_at(i), pair_at(i + 4u)), vec4<f32>(pair_at(i + 8u), pair_at(i + 12u)));
}

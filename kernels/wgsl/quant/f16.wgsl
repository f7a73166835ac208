// f16: float16 weights, taken eight at a time. Layout: 2 bytes each; a row may begin in the middle of a word.
const BLOCK_LEN: u32 = 8u;
const BLOCK_BYTES: u32 = 16u;

fn dequant8(block: u32, at: u32) -> Eight {
  let i = block + 2u * at;
  return Eight(
    vec4<f32>(unpack2x16float(word_at(i)), unpack2x16float(word_at(i + 4u))),
    vec4<f32>(unpack2x16float(word_at(i + 8u)), unpack2x16float(word_at(i + 12u))),
  );
}

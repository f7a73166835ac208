// q4_1: 32 weights at a time as bytes with their scales. Formula: quant/q4_1.wgsl.
fn unpack32(block: u32, at: u32) -> Run {
  let words = words_at(block + 4u);
  let nibbles = vec4<u32>(0x0f0f0f0fu);
  let least = vec2<f32>(-half_at(block + 2u));
  return Run(words & nibbles, (words >> vec4<u32>(4u)) & nibbles, vec2<f32>(half_at(block)), least);
}

// q4_0: 32 weights at a time as bytes with their scales. Formula: quant/q4_0.wgsl.
fn unpack32(block: u32, at: u32) -> Run {
  let d = half_at(block);
  let words = words_at(block + 2u);
  let nibbles = vec4<u32>(0x0f0f0f0fu);
  return Run(words & nibbles, (words >> vec4<u32>(4u)) & nibbles, vec2<f32>(d), vec2<f32>(8.0 * d));
}

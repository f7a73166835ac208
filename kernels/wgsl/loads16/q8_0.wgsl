// q8_0: 32 weights at a time as bytes with their scales. Formula: quant/q8_0.wgsl.
fn unpack32(block: u32, at: u32) -> Run {
  let i = block + 2u + at;
  return Run(words_at(i), words_at(i + 16u), vec2<f32>(half_at(block)), vec2<f32>());
}

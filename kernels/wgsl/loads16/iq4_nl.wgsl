// iq4_nl: 32 weights at a time as bytes with their scales. Formula: quant/iq4_nl.wgsl.
fn unpack32(block: u32, at: u32) -> Run {
  let words = words_at(block + 2u);
  return Run(levels16(words), levels16(words >> vec4<u32>(4u)), vec2<f32>(half_at(block)), vec2<f32>());
}

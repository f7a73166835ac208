// iq4_xs: 32 weights at a time as bytes with their scales. Formula: quant/iq4_xs.wgsl.
fn unpack32(block: u32, at: u32) -> Run {
  let group = at >> 5u;
  let low = (byte_at(block + 4u + (group >> 1u)) >> (4u * (group & 1u))) & 15u;
  let high = (word_at(block + 2u) >> (2u * group)) & 3u;
  let s = half_at(block) * (f32(low | (high << 4u)) - 32.0);
  let words = words_at(block + 8u + group * 16u);
  return Run(levels16(words), levels16(words >> vec4<u32>(4u)), vec2<f32>(s), vec2<f32>());
}

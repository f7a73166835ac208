// q5_0: 32 weights at a time as bytes with their scales. Formula: quant/q5_0.wgsl.
/// The fifth bits of sixteen weights, one in each byte.
fn fifth_bits(bits: u32) -> vec4<u32> {
  return vec4<u32>(spread_bits(bits), spread_bits(bits >> 4u), spread_bits(bits >> 8u), spread_bits(bits >> 12u)) <<
    vec4<u32>(4u);
}

fn unpack32(block: u32, at: u32) -> Run {
  let d = half_at(block);
  let high = word_at(block + 2u);
  let words = words_at(block + 6u);
  let nibbles = vec4<u32>(0x0f0f0f0fu);
  let lo = (words & nibbles) | fifth_bits(high);
  let hi = ((words >> vec4<u32>(4u)) & nibbles) | fifth_bits(high >> 16u);
  return Run(lo, hi, vec2<f32>(d), vec2<f32>(16.0 * d));
}

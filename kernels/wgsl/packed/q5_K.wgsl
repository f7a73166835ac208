// q5_K: 32 weights at a time as bytes with their scales. Formula: quant/q5_K.wgsl.
fn unpack32(block: u32, at: u32) -> Run {
  let scales = scale_min(block + 4u, at >> 5u);
  let i = block + 48u + (at >> 6u) * 32u;
  let shift = vec4<u32>(((at >> 5u) & 1u) * 4u);
  let bit = vec4<u32>(at >> 5u);
  let nibbles = vec4<u32>(0x0f0f0f0fu);
  let ones = vec4<u32>(0x01010101u);
  let fifth_lo = ((words_at(block + 16u) >> bit) & ones) << vec4<u32>(4u);
  let fifth_hi = ((words_at(block + 32u) >> bit) & ones) << vec4<u32>(4u);
  return Run(
    ((words_at(i) >> shift) & nibbles) | fifth_lo,
    ((words_at(i + 16u) >> shift) & nibbles) | fifth_hi,
    vec2<f32>(half_at(block) * scales.x),
    vec2<f32>(half_at(block + 2u) * scales.y),
  );
}

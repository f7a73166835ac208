// q4_K: 32 weights at a time as bytes with their scales. Formula: quant/q4_K.wgsl.
fn unpack32(block: u32, at: u32) -> Run {
  let scales = scale_min(block + 4u, at >> 5u);
  let i = block + 16u + (at >> 6u) * 32u;
  let shift = vec4<u32>(((at >> 5u) & 1u) * 4u);
  let nibbles = vec4<u32>(0x0f0f0f0fu);
  return Run(
    (words_at(i) >> shift) & nibbles,
    (words_at(i + 16u) >> shift) & nibbles,
    vec2<f32>(half_at(block) * scales.x),
    vec2<f32>(half_at(block + 2u) * scales.y),
  );
}

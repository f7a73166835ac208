// q2_K: 32 weights at a time as bytes with their scales. Formula: quant/q2_K.wgsl.
fn unpack32(block: u32, at: u32) -> Run {
  let scales = vec2<u32>(byte_at(block + (at >> 4u)), byte_at(block + (at >> 4u) + 1u));
  let i = block + 16u + (at >> 7u) * 32u;
  let shift = vec4<u32>(((at >> 5u) & 3u) * 2u);
  let pairs = vec4<u32>(0x03030303u);
  return Run(
    (words_at(i) >> shift) & pairs,
    (words_at(i + 16u) >> shift) & pairs,
    half_at(block + 80u) * vec2<f32>(scales & vec2<u32>(15u)),
    half_at(block + 82u) * vec2<f32>(scales >> vec2<u32>(4u)),
  );
}

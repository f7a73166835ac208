// mxfp4: 32 weights at a time as bytes with their scales. Formula: quant/mxfp4.wgsl.
fn unpack32(block: u32, at: u32) -> Run {
  let e = byte_at(block);
  // The two smallest powers are subnormal.
  let d = bitcast<f32>(select((e - 1u) << 23u, 0x00200000u << e, e < 2u));
  let words = words_at(block + 1u);
  return Run(levels16(words), levels16(words >> vec4<u32>(4u)), vec2<f32>(d), vec2<f32>());
}

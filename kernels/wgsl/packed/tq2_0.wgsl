// tq2_0: 32 weights at a time as bytes with their scales. Formula: quant/tq2_0.wgsl.
fn unpack32(block: u32, at: u32) -> Run {
  let d = half_at(block + 64u);
  let i = block + (at >> 7u) * 32u;
  let shift = vec4<u32>(((at >> 5u) & 3u) * 2u);
  let pairs = vec4<u32>(0x03030303u);
  return Run((words_at(i) >> shift) & pairs, (words_at(i + 16u) >> shift) & pairs, vec2<f32>(d), vec2<f32>(d));
}

// q3_K: 32 weights at a time as bytes with their scales. Formula: quant/q3_K.wgsl.
fn scale_at(block: u32, group: u32) -> f32 {
  let low = (byte_at(block + 96u + (group & 7u)) >> ((group >> 3u) * 4u)) & 15u;
  let top = (byte_at(block + 104u + (group & 3u)) >> ((group >> 2u) * 2u)) & 3u;
  return f32(low | (top << 4u)) - 32.0;
}

fn unpack32(block: u32, at: u32) -> Run {
  let group = at >> 4u;
  let s = half_at(block + 108u) * vec2<f32>(scale_at(block, group), scale_at(block, group + 1u));
  let i = block + 32u + (at >> 7u) * 32u;
  let shift = vec4<u32>(((at >> 5u) & 3u) * 2u);
  let bit = vec4<u32>(at >> 5u);
  let pairs = vec4<u32>(0x03030303u);
  let ones = vec4<u32>(0x01010101u);
  let third_lo = ((words_at(block) >> bit) & ones) << vec4<u32>(2u);
  let third_hi = ((words_at(block + 16u) >> bit) & ones) << vec4<u32>(2u);
  let lo = ((words_at(i) >> shift) & pairs) | third_lo;
  let hi = ((words_at(i + 16u) >> shift) & pairs) | third_hi;
  return Run(lo, hi, s, 4.0 * s);
}

// q6_K: 32 weights at a time as bytes with their scales. Formula: quant/q6_K.wgsl.
fn unpack32(block: u32, at: u32) -> Run {
  let scales = unpack4xI8(word_at(block + 192u + (at >> 4u))).xy;
  let s = half_at(block + 208u) * vec2<f32>(scales);
  let run = (at >> 5u) & 3u;
  let low = block + (at >> 7u) * 64u + (run & 1u) * 32u;
  let low_shift = vec4<u32>((run >> 1u) * 4u);
  let high = block + 128u + (at >> 7u) * 32u;
  let high_shift = vec4<u32>(run * 2u);
  let nibbles = vec4<u32>(0x0f0f0f0fu);
  let pairs = vec4<u32>(0x03030303u);
  let upper_lo = ((words_at(high) >> high_shift) & pairs) << vec4<u32>(4u);
  let upper_hi = ((words_at(high + 16u) >> high_shift) & pairs) << vec4<u32>(4u);
  let lo = ((words_at(low) >> low_shift) & nibbles) | upper_lo;
  let hi = ((words_at(low + 16u) >> low_shift) & nibbles) | upper_hi;
  return Run(lo, hi, s, 32.0 * s);
}

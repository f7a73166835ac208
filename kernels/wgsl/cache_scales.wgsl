// cache_scales: scales of groups of values in few bits, spliced into cache_q8 and cache_q4, which have LEVELS.

/// The bits of the largest magnitude: as integers they have the order of numbers, and NaN is the largest.
fn peak_bits(x: vec4<f32>) -> u32 {
  let bits = bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu);
  return max(max(bits.x, bits.y), max(bits.z, bits.w));
}
/// The scale of a group: 0 if its values are too small, NaN or infinite if one of them is.
fn scale_from(peak: u32) -> f32 {
  if (peak >= 0x7f800000u) { return bitcast<f32>(peak); }
  let most = bitcast<f32>(peak);
  return select(most / LEVELS, 0.0, most < 1.5e-36);
}
fn scale_word(scale: f32) -> Four { return bitcast<u32>(scale); }
/// As `four_of`, in float16.
fn halves_of(four: Four, scale: Four, i: u32) -> vec2<u32> {
  let x = four_of(four, scale, i);
  return vec2<u32>(pack2x16float(x.xy), pack2x16float(x.zw));
}

// bytes16: replaces `bytes` where packed weights are read 16 bytes at a time: `w` is an array of vec4<u32>.

/// Eight neighbouring values.
struct Eight { lo: vec4<f32>, hi: vec4<f32> }

/// The bytes of a word, unsigned.
fn bytes_of(word: u32) -> vec4<f32> {
  return vec4<f32>(unpack4xU8(word));
}

/// Scales, then minimums, of the pair `pair` of 32 weights each, from the first 16 bytes of a block of q4_K or q5_K.
/// The 12 bytes with the 6-bit numbers: see `scale_min` in bytes.wgsl.
fn scale_pair(head: vec4<u32>, pair: u32) -> vec4<f32> {
  let shift = vec3<u32>((pair & 1u) * 16u);
  let words = head.yzw >> shift;
  let low = words.xy & vec2<u32>(0x3f3fu);
  let upper = (words.xy & vec2<u32>(0xc0c0u)) >> vec2<u32>(2u);
  let high = (vec2<u32>(words.z, words.z >> 4u) & vec2<u32>(0x0f0fu)) | upper;
  let found = select(high, low, pair < 2u);
  let numbers = vec4<f32>(vec4<u32>(found & vec2<u32>(255u), found >> vec2<u32>(8u))).xzyw;
  return unpack2x16float(head.x).xxyy * numbers;
}

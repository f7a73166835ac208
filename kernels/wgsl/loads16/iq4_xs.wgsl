// iq4_xs: 32 weights at a time as bytes with their scales. Formula: quant/iq4_xs.wgsl.
/// The levels of sixteen nibbles.
fn levels16(words: vec4<u32>) -> vec4<u32> {
  let q = words & vec4<u32>(0x0f0f0f0fu);
  return vec4<u32>(
    pack4xI8(vec4<i32>(levels_of(q.x))),
    pack4xI8(vec4<i32>(levels_of(q.y))),
    pack4xI8(vec4<i32>(levels_of(q.z))),
    pack4xI8(vec4<i32>(levels_of(q.w))),
  );
}

fn unpack32(block: u32, at: u32) -> Run {
  let group = at >> 5u;
  let low = (byte_at(block + 4u + (group >> 1u)) >> (4u * (group & 1u))) & 15u;
  let high = (word_at(block + 2u) >> (2u * group)) & 3u;
  let s = half_at(block) * (f32(low | (high << 4u)) - 32.0);
  let words = words_at(block + 8u + group * 16u);
  return Run(levels16(words), levels16(words >> vec4<u32>(4u)), vec2<f32>(s), vec2<f32>());
}

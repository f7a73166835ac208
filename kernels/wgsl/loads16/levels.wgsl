// levels: nibbles to signed bytes, for block types whose `levels_of` has whole numbers.

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

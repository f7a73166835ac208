// turn: the rotation of a pair by its row's position, spliced into the kernels with RoPE.

/// The part of a position that rotates a pair: see `sectionOf` of src/engine/program/rope.ts.
fn axis_of(pair: u32) -> u32 {
  if (p.height + p.width == 0u) { return 0u; }
  let place = pair % (p.time + p.height + p.width);
  if (p.interleaved == 0u) {
    return select(select(2u, 1u, place < p.time + p.height), 0u, place < p.time);
  }
  if (place % 3u == 1u && place < 3u * p.height) { return 1u; }
  return select(0u, 2u, place % 3u == 2u && place < 3u * p.width);
}

/// The cosine and the sine. @param position time, height and width
fn turn_of(pair: u32, position: vec3<u32>) -> vec2<f32> {
  return turns[position[axis_of(pair)] * p.pairs + pair];
}

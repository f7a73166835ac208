// iq4_nl: w = d · LEVELS[q]. Layout: `block_iq4_nl` in ggml-common.h, as q4_0; levels: `kvalues_iq4nl`.
const BLOCK_LEN: u32 = 32u;
const BLOCK_BYTES: u32 = 18u;
const LEVELS = array<f32, 16>(
  -127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0,
);

fn levels_of(word: u32) -> vec4<f32> {
  let q = unpack4xU8(word);
  return vec4<f32>(LEVELS[q.x], LEVELS[q.y], LEVELS[q.z], LEVELS[q.w]);
}

fn dequant8(block: u32, at: u32) -> Eight {
  let d = half_at(block);
  let i = block + 2u + (at & 15u);
  let shift = (at >> 4u) * 4u;
  return Eight(
    d * levels_of((word_at(i) >> shift) & 0x0f0f0f0fu),
    d * levels_of((word_at(i + 4u) >> shift) & 0x0f0f0f0fu),
  );
}

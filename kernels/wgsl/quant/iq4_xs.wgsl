// iq4_xs: w = d · (s − 32) · LEVELS[q], with s of 6 bits for each 32 weights. Layout: `block_iq4_xs` in ggml-common.h;
// levels: `kvalues_iq4nl`.
const BLOCK_LEN: u32 = 256u;
const BLOCK_BYTES: u32 = 136u;
const LEVELS = array<f32, 16>(
  -127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0, 89.0, 113.0,
);

fn levels_of(word: u32) -> vec4<f32> {
  let q = unpack4xU8(word);
  return vec4<f32>(LEVELS[q.x], LEVELS[q.y], LEVELS[q.z], LEVELS[q.w]);
}

fn dequant8(block: u32, at: u32) -> Eight {
  let group = at >> 5u;
  let low = (byte_at(block + 4u + (group >> 1u)) >> (4u * (group & 1u))) & 15u;
  let high = (word_at(block + 2u) >> (2u * group)) & 3u;
  let s = half_at(block) * (f32(low | (high << 4u)) - 32.0);
  let i = block + 8u + group * 16u + (at & 15u);
  let shift = ((at >> 4u) & 1u) * 4u;
  return Eight(
    s * levels_of((word_at(i) >> shift) & 0x0f0f0f0fu),
    s * levels_of((word_at(i + 4u) >> shift) & 0x0f0f0f0fu),
  );
}

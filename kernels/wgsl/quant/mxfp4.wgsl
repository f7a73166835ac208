// mxfp4: w = 2^(e − 128) · LEVELS[q], levels doubled. Layout: `block_mxfp4` in ggml-common.h, nibbles as in q4_0;
// levels: `kvalues_mxfp4`.
const BLOCK_LEN: u32 = 32u;
const BLOCK_BYTES: u32 = 17u;
const LEVELS = array<f32, 16>(
  0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0,
);

fn levels_of(word: u32) -> vec4<f32> {
  let q = unpack4xU8(word);
  return vec4<f32>(LEVELS[q.x], LEVELS[q.y], LEVELS[q.z], LEVELS[q.w]);
}

fn dequant8(block: u32, at: u32) -> Eight {
  let e = byte_at(block);
  // The two smallest powers are subnormal.
  let d = bitcast<f32>(select((e - 1u) << 23u, 0x00200000u << e, e < 2u));
  let i = block + 1u + (at & 15u);
  let shift = (at >> 4u) * 4u;
  return Eight(
    d * levels_of((word_at(i) >> shift) & 0x0f0f0f0fu),
    d * levels_of((word_at(i + 4u) >> shift) & 0x0f0f0f0fu),
  );
}

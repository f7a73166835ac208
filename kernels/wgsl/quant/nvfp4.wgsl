// nvfp4: w = d · LEVELS[q], d half of the scale of each 16 weights, levels doubled. Layout: `block_nvfp4` in
// ggml-common.h; scales: `ggml_ue4m3_to_fp32`.
const BLOCK_LEN: u32 = 64u;
const BLOCK_BYTES: u32 = 36u;
const LEVELS = array<f32, 16>(
  0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0,
);

fn levels_of(word: u32) -> vec4<f32> {
  let q = unpack4xU8(word);
  return vec4<f32>(LEVELS[q.x], LEVELS[q.y], LEVELS[q.z], LEVELS[q.w]);
}

fn half_scale(code: u32) -> f32 {
  let exponent = (code >> 3u) & 15u;
  let mantissa = f32(code & 7u);
  if code == 0x7fu {
    return 0.0;
  }
  if exponent == 0u {
    return mantissa / 1024.0;
  }
  return bitcast<f32>((exponent + 119u) << 23u) * (1.0 + mantissa / 8.0);
}

fn dequant8(block: u32, at: u32) -> Eight {
  let part = at >> 4u;
  let d = half_scale(byte_at(block + part));
  let i = block + 4u + part * 8u;
  let shift = ((at >> 3u) & 1u) * 4u;
  return Eight(
    d * levels_of((word_at(i) >> shift) & 0x0f0f0f0fu),
    d * levels_of((word_at(i + 4u) >> shift) & 0x0f0f0f0fu),
  );
}

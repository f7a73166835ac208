// q1_0: w = ±d by one bit. Layout: `block_q1_0` in ggml-common.h.
const BLOCK_LEN: u32 = 128u;
const BLOCK_BYTES: u32 = 18u;

fn dequant8(block: u32, at: u32) -> Eight {
  let d = half_at(block);
  let signs = byte_at(block + 2u + (at >> 3u));
  let lo = vec4<f32>((vec4<u32>(signs) >> vec4<u32>(0u, 1u, 2u, 3u)) & vec4<u32>(1u));
  let hi = vec4<f32>((vec4<u32>(signs) >> vec4<u32>(4u, 5u, 6u, 7u)) & vec4<u32>(1u));
  return Eight(d * (2.0 * lo - 1.0), d * (2.0 * hi - 1.0));
}

// q2_0: w = d · (q − 1), q of 2 bits, four to a byte. Layout: `block_q2_0` in ggml-common.h.
const BLOCK_LEN: u32 = 64u;
const BLOCK_BYTES: u32 = 18u;

fn dequant8(block: u32, at: u32) -> Eight {
  let d = half_at(block);
  let lo = vec4<u32>(byte_at(block + 2u + (at >> 2u)));
  let hi = vec4<u32>(byte_at(block + 3u + (at >> 2u)));
  let shifts = vec4<u32>(0u, 2u, 4u, 6u);
  return Eight(
    d * (vec4<f32>((lo >> shifts) & vec4<u32>(3u)) - 1.0),
    d * (vec4<f32>((hi >> shifts) & vec4<u32>(3u)) - 1.0),
  );
}

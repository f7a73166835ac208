// f32: float32 weights, taken eight at a time. Layout: 4 bytes each.
const BLOCK_LEN: u32 = 8u;
const BLOCK_BYTES: u32 = 32u;

fn dequant8(block: u32, at: u32) -> Eight {
  let i = (block >> 2u) + at;
  return Eight(
    bitcast<vec4<f32>>(vec4<u32>(w[i], w[i + 1u], w[i + 2u], w[i + 3u])),
    bitcast<vec4<f32>>(vec4<u32>(w[i + 4u], w[i + 5u], w[i + 6u], w[i + 7u])),
  );
}

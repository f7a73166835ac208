// tq2_0: 16 bytes are 16 weights of each of four runs, 32 weights apart. Formula: quant/tq2_0.wgsl.
fn unit_at(first_block: u32, unit: u32) -> Unit {
  let block = (first_block + (unit >> 2u)) * BLOCK_BYTES;
  let bytes = words_at(block + (unit & 3u) * 16u);
  let d = vec4<f32>(half_at(block + 64u));
  return Unit(
    pairs_of(bytes),
    d,
    d,
  );
}

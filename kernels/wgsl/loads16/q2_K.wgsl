// q2_K: 16 bytes are 16 weights of each of four runs, 32 weights apart. Formula: quant/q2_K.wgsl.
fn unit_at(first_block: u32, unit: u32) -> Unit {
  let block = (first_block + (unit >> 2u)) * BLOCK_BYTES;
  let bytes = words_at(block + 16u + (unit & 3u) * 16u);
  let group = block + ((unit >> 1u) & 1u) * 8u + (unit & 1u);
  let scales = vec4<u32>(byte_at(group), byte_at(group + 2u), byte_at(group + 4u), byte_at(group + 6u));
  return Unit(
    pairs_of(bytes),
    half_at(block + 80u) * vec4<f32>(scales & vec4<u32>(15u)),
    half_at(block + 82u) * vec4<f32>(scales >> vec4<u32>(4u)),
  );
}

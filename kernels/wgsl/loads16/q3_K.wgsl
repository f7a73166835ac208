// q3_K: 16 bytes are the lower bits of 16 weights of each of four runs, 32 weights apart; the third bits of eight such
// runs are in 16 other bytes. Formula: quant/q3_K.wgsl.
/// Bit `run` of sixteen bytes, where a weight has its third.
fn third_bits(bytes: vec4<u32>, run: u32) -> vec4<u32> {
  return ((bytes >> vec4<u32>(run)) & vec4<u32>(0x01010101u)) << vec4<u32>(2u);
}

fn unit_at(first_block: u32, unit: u32) -> Unit {
  let block = (first_block + (unit >> 2u)) * BLOCK_BYTES;
  let half = (unit >> 1u) & 1u;
  let bytes = words_at(block + 32u + (unit & 3u) * 16u);
  let thirds = words_at(block + (unit & 1u) * 16u) >> vec4<u32>(4u * half);
  // Groups 8 · half + 2 · run + (unit & 1): their lower four bits are in bytes 96 to 103, the upper two in 104 to 107.
  let low = block + 96u + (unit & 1u);
  let lows = vec4<u32>(byte_at(low), byte_at(low + 2u), byte_at(low + 4u), byte_at(low + 6u)) >> vec4<u32>(4u * half);
  let tops = vec2<u32>(byte_at(low + 8u), byte_at(low + 10u)) >> vec2<u32>(4u * half);
  let upper = vec4<u32>(tops, tops >> vec2<u32>(2u)) & vec4<u32>(3u);
  let numbers = (lows & vec4<u32>(15u)) | (upper << vec4<u32>(4u));
  let scales = half_at(block + 108u) * (vec4<f32>(numbers) - vec4<f32>(32.0));
  let q = pairs_of(bytes);
  return Unit(
    array<vec4<u32>, RUNS>(
      q[0] | third_bits(thirds, 0u),
      q[1] | third_bits(thirds, 1u),
      q[2] | third_bits(thirds, 2u),
      q[3] | third_bits(thirds, 3u),
    ),
    scales,
    4.0 * scales,
  );
}

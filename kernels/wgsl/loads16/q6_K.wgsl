// q6_K: 16 bytes are the lower bits of 16 weights, and of 16 that come 64 later; the upper bits of four such runs are
// in 16 other bytes. Formula: quant/q6_K.wgsl.
const UNIT: u32 = 32u;
const RUNS: u32 = 2u;
const RUN_STEP: u32 = 64u;

fn unit_start(unit: u32) -> u32 { return (unit >> 2u) * 128u + (unit & 3u) * 16u; }

fn values_of(word: u32) -> vec4<f32> { return bytes_of(word); }

fn unit_at(first_block: u32, unit: u32) -> Unit {
  let block = (first_block + (unit >> 3u)) * BLOCK_BYTES;
  let half = (unit >> 2u) & 1u;
  let pair = (unit >> 1u) & 1u;
  let bytes = words_at(block + (unit & 7u) * 16u);
  let upper = words_at(block + 128u + half * 32u + (unit & 1u) * 16u) >> vec4<u32>(2u * pair);
  let group = block + 192u + half * 8u + (unit & 3u);
  let numbers = vec2<i32>(vec2<u32>(byte_at(group), byte_at(group + 4u)) << vec2<u32>(24u)) >> vec2<u32>(24u);
  let scales = half_at(block + 208u) * vec2<f32>(numbers);
  let nibbles = vec4<u32>(0x0f0f0f0fu);
  let pairs = vec4<u32>(0x03030303u);
  return Unit(
    array<vec4<u32>, RUNS>(
      (bytes & nibbles) | ((upper & pairs) << vec4<u32>(4u)),
      ((bytes >> vec4<u32>(4u)) & nibbles) | (upper & (pairs << vec4<u32>(4u))),
    ),
    vec4<f32>(scales, 0.0, 0.0),
    vec4<f32>(32.0 * scales, 0.0, 0.0),
  );
}

// q5_K: 16 bytes are the lower bits of 16 weights of 32, and of 16 of the next 32; the fifth bits of eight such runs
// are in 16 other bytes. Formula: quant/q5_K.wgsl.
const UNIT: u32 = 32u;
const RUNS: u32 = 2u;
const RUN_STEP: u32 = 32u;

fn unit_start(unit: u32) -> u32 { return (unit >> 1u) * 64u + (unit & 1u) * 16u; }

fn values_of(word: u32) -> vec4<f32> { return bytes_of(word); }

fn unit_at(first_block: u32, unit: u32) -> Unit {
  let at = (first_block + (unit >> 3u)) * 11u;
  let pair = (unit >> 1u) & 3u;
  let bytes = w[at + 3u + (unit & 7u)];
  let fifths = w[at + 1u + (unit & 1u)] >> vec4<u32>(2u * pair);
  let nibbles = vec4<u32>(0x0f0f0f0fu);
  let ones = vec4<u32>(0x01010101u);
  let scales = scale_pair(w[at], pair);
  return Unit(
    array<vec4<u32>, RUNS>(
      (bytes & nibbles) | ((fifths & ones) << vec4<u32>(4u)),
      ((bytes >> vec4<u32>(4u)) & nibbles) | (((fifths >> vec4<u32>(1u)) & ones) << vec4<u32>(4u)),
    ),
    vec4<f32>(scales.xy, 0.0, 0.0),
    vec4<f32>(scales.zw, 0.0, 0.0),
  );
}

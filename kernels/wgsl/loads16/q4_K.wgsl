// q4_K: 16 bytes are 16 weights of 32, and 16 of the next 32. Formula: quant/q4_K.wgsl.
const UNIT: u32 = 32u;
const RUNS: u32 = 2u;
const RUN_STEP: u32 = 32u;

fn unit_start(unit: u32) -> u32 { return (unit >> 1u) * 64u + (unit & 1u) * 16u; }

fn values_of(word: u32) -> vec4<f32> { return bytes_of(word); }

fn unit_at(first_block: u32, unit: u32) -> Unit {
  let at = (first_block + (unit >> 3u)) * 9u;
  let head = w[at];
  let bytes = w[at + 1u + (unit & 7u)];
  let nibbles = vec4<u32>(0x0f0f0f0fu);
  let scales = scale_pair(head, (unit >> 1u) & 3u);
  return Unit(
    array<vec4<u32>, RUNS>(bytes & nibbles, (bytes >> vec4<u32>(4u)) & nibbles),
    vec4<f32>(scales.xy, 0.0, 0.0),
    vec4<f32>(scales.zw, 0.0, 0.0),
  );
}

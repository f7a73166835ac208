// tq2_0: 16 bytes are 16 weights of each of four runs, 32 weights apart. Formula: quant/tq2_0.wgsl.
const UNIT: u32 = 64u;
const RUNS: u32 = 4u;
const RUN_STEP: u32 = 32u;

fn unit_start(unit: u32) -> u32 { return (unit >> 1u) * 128u + (unit & 1u) * 16u; }

fn values_of(word: u32) -> vec4<f32> { return bytes_of(word); }

fn unit_at(first_block: u32, unit: u32) -> Unit {
  let block = (first_block + (unit >> 2u)) * BLOCK_BYTES;
  let bytes = words_at(block + (unit & 3u) * 16u);
  let pairs = vec4<u32>(0x03030303u);
  let d = vec4<f32>(half_at(block + 64u));
  return Unit(
    array<vec4<u32>, RUNS>(
      bytes & pairs,
      (bytes >> vec4<u32>(2u)) & pairs,
      (bytes >> vec4<u32>(4u)) & pairs,
      (bytes >> vec4<u32>(6u)) & pairs,
    ),
    d,
    d,
  );
}

// four_runs: a unit of 16 weights of each of four runs, 32 weights apart, for block types that store 2 bits of each run
// in a byte.

const UNIT: u32 = 64u;
const RUNS: u32 = 4u;
const RUN_STEP: u32 = 32u;

fn unit_start(unit: u32) -> u32 { return (unit >> 1u) * 128u + (unit & 1u) * 16u; }

fn values_of(word: u32) -> vec4<f32> { return bytes_of(word); }

/// The lower, second, third and upper two bits of sixteen bytes.
fn pairs_of(bytes: vec4<u32>) -> array<vec4<u32>, RUNS> {
  let pairs = vec4<u32>(0x03030303u);
  return array<vec4<u32>, RUNS>(
    bytes & pairs,
    (bytes >> vec4<u32>(2u)) & pairs,
    (bytes >> vec4<u32>(4u)) & pairs,
    (bytes >> vec4<u32>(6u)) & pairs,
  );
}

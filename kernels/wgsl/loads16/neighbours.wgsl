// neighbours: a unit of 32 neighbouring weights, for block types with `unpack32`.

/// Thirty-two weights as signed bytes: scale · q − least, of each half.
struct Run { lo: vec4<u32>, hi: vec4<u32>, scale: vec2<f32>, least: vec2<f32> }
const UNIT: u32 = 32u;
const RUNS: u32 = 2u;
const RUN_STEP: u32 = 16u;

fn unit_start(unit: u32) -> u32 { return unit * 32u; }

fn values_of(word: u32) -> vec4<f32> { return signed_bytes_of(word); }

fn unit_at(first_block: u32, unit: u32) -> Unit {
  let at = unit * 32u;
  let run = unpack32((first_block + at / BLOCK_LEN) * BLOCK_BYTES, at % BLOCK_LEN);
  return Unit(array<vec4<u32>, RUNS>(run.lo, run.hi), vec4<f32>(run.scale, 0.0, 0.0), vec4<f32>(run.least, 0.0, 0.0));
}

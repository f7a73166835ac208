// cache_f32: keys and values in float32, spliced into the kernels that read or write them. See cache_q8.

const GROUP: u32 = 4u;
alias Four = vec4<f32>;
fn four_place(i: u32) -> u32 { return i; }
fn scale_place(i: u32) -> u32 { return i; }
fn four_of(four: Four, scale: Four, i: u32) -> vec4<f32> { return four; }
fn halves_of(four: Four, scale: Four, i: u32) -> vec2<u32> {
  let x = four_of(four, scale, i);
  return vec2<u32>(pack2x16float(x.xy), pack2x16float(x.zw));
}
fn four_from(x: vec4<f32>, scale: f32) -> Four { return x; }

fn peak_bits(x: vec4<f32>) -> u32 { return 0u; }
fn scale_from(peak: u32) -> f32 { return 1.0; }
fn scale_word(scale: f32) -> Four { return vec4<f32>(scale); }

alias Unit = f32;
const UNIT: u32 = 1u;
const WORDS: u32 = 1u;
fn pack(x: array<f32, UNIT>) -> array<Unit, WORDS> { return x; }
fn unpack(words: array<Unit, WORDS>) -> array<f32, UNIT> { return words; }

// cache_f16: keys and values rounded to float16, spliced into the kernels that read or write them. Requires no
// feature. See cache_q8.

const GROUP: u32 = 4u;
alias Four = vec2<u32>;
fn four_place(i: u32) -> u32 { return i; }
fn scale_place(i: u32) -> u32 { return i; }
fn four_of(four: Four, scale: Four, i: u32) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(four.x), unpack2x16float(four.y));
}
fn halves_of(four: Four, scale: Four, i: u32) -> vec2<u32> { return four; }
fn four_from(x: vec4<f32>, scale: f32) -> Four { return vec2<u32>(pack2x16float(x.xy), pack2x16float(x.zw)); }

fn peak_bits(x: vec4<f32>) -> u32 { return 0u; }
fn scale_from(peak: u32) -> f32 { return 1.0; }
fn scale_word(scale: f32) -> Four { return vec2<u32>(bitcast<u32>(scale)); }

alias Unit = u32;
const UNIT: u32 = 2u;
const WORDS: u32 = 1u;
fn pack(x: array<f32, UNIT>) -> array<Unit, WORDS> {
  return array<Unit, WORDS>(pack2x16float(vec2<f32>(x[0], x[1])));
}
fn unpack(words: array<Unit, WORDS>) -> array<f32, UNIT> {
  let both = unpack2x16float(words[0]);
  return array<f32, UNIT>(both.x, both.y);
}

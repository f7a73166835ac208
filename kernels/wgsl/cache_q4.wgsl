// cache_q4: keys and values as integers of 4 bits, spliced into the kernels that read or write them. A group is the
// integers n, eight in a word, then the scale as float32: value = (2n − 15) · scale. See cache_q8.

const GROUP: u32 = 32u;
const FOURS: u32 = GROUP / 4u;

/// A word has two fours.
alias Four = u32;
fn four_place(i: u32) -> u32 { return i / FOURS * 5u + i % FOURS / 2u; }
fn scale_place(i: u32) -> u32 { return i / FOURS * 5u + 4u; }
fn four_of(four: Four, scale: Four, i: u32) -> vec4<f32> {
  let shifted = vec4<u32>(four >> (16u * (i % 2u))) >> vec4<u32>(0u, 4u, 8u, 12u);
  return (2.0 * vec4<f32>(shifted & vec4<u32>(15u)) - 15.0) * bitcast<f32>(scale);
}
fn four_from(x: vec4<f32>, scale: f32) -> Four {
  let inverse = select(0.0, 0.5 / scale, scale > 0.0);
  let n = vec4<u32>(clamp(floor(x * inverse) + 8.0, vec4<f32>(0.0), vec4<f32>(15.0)));
  return n.x | (n.y << 4u) | (n.z << 8u) | (n.w << 12u);
}
const JOINS: bool = true;
fn join_fours(first: Four, second: Four) -> Four { return first | (second << 16u); }

/// The largest |2n − 15|.
const LEVELS: f32 = 15.0;

alias Unit = u32;
const UNIT: u32 = GROUP;
const WORDS: u32 = 5u;
fn pack(x: array<f32, UNIT>) -> array<Unit, WORDS> {
  var values = x;
  var fours: array<vec4<f32>, 8>;
  for (var i = 0u; i < FOURS; i++) {
    fours[i] = vec4<f32>(values[4u * i], values[4u * i + 1u], values[4u * i + 2u], values[4u * i + 3u]);
  }
  var peak = 0u;
  for (var i = 0u; i < FOURS; i++) { peak = max(peak, peak_bits(fours[i])); }
  let scale = scale_from(peak);
  var words: array<Unit, WORDS>;
  for (var i = 0u; i < FOURS; i += 2u) {
    words[i / 2u] = join_fours(four_from(fours[i], scale), four_from(fours[i + 1u], scale));
  }
  words[4] = scale_word(scale);
  return words;
}
fn unpack(words: array<Unit, WORDS>) -> array<f32, UNIT> {
  var packed = words;
  var fours: array<vec4<f32>, 8>;
  for (var i = 0u; i < FOURS; i++) { fours[i] = four_of(packed[i / 2u], packed[4], i); }
  var values: array<f32, UNIT>;
  for (var i = 0u; i < GROUP; i++) { values[i] = fours[i / 4u][i % 4u]; }
  return values;
}

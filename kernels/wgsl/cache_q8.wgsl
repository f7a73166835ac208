// cache_q8: keys and values as integers of 8 bits in groups that share a scale, spliced into the kernels that read or
// write them. A group is the integers, four in a word, then the scale as float32: value = integer · scale. Kernels
// rotate heads before: see rotation.

/// Values that share a scale, which all lie in one head; 4: values have no scales.
const GROUP: u32 = 32u;
const FOURS: u32 = GROUP / 4u;

/// Four values, the unit of reads.
alias Four = u32;
/// The index of four values in the buffer: of values 4i … 4i + 3, and of their scale.
fn four_place(i: u32) -> u32 { return i + i / FOURS; }
fn scale_place(i: u32) -> u32 { return i / FOURS * (FOURS + 1u) + FOURS; }
/// @param i the index of the four values
fn four_of(four: Four, scale: Four, i: u32) -> vec4<f32> {
  let shifted = bitcast<vec4<i32>>(vec4<u32>(four) << vec4<u32>(24u, 16u, 8u, 0u));
  return vec4<f32>(shifted >> vec4<u32>(24u)) * bitcast<f32>(scale);
}
fn four_from(x: vec4<f32>, scale: f32) -> Four {
  let inverse = select(0.0, 1.0 / scale, scale > 0.0);
  let near = round(clamp(x * inverse, vec4<f32>(-127.0), vec4<f32>(127.0)));
  let bytes = bitcast<vec4<u32>>(vec4<i32>(near)) & vec4<u32>(255u);
  return bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
}

const JOINS: bool = false;
fn join_fours(first: Four, second: Four) -> Four { return first; }

/// The integer of the largest magnitude.
const LEVELS: f32 = 127.0;

/// UNIT values in WORDS words, the unit of writes.
alias Unit = u32;
const UNIT: u32 = GROUP;
const WORDS: u32 = FOURS + 1u;
fn pack(x: array<f32, UNIT>) -> array<Unit, WORDS> {
  var values = x;
  var peak = 0u;
  for (var i = 0u; i < FOURS; i++) { peak = max(peak, peak_bits(four_in(&values, i))); }
  let scale = scale_from(peak);
  var words: array<Unit, WORDS>;
  for (var i = 0u; i < FOURS; i++) { words[i] = four_from(four_in(&values, i), scale); }
  words[FOURS] = scale_word(scale);
  return words;
}
fn unpack(words: array<Unit, WORDS>) -> array<f32, UNIT> {
  var packed = words;
  var values: array<f32, UNIT>;
  for (var i = 0u; i < FOURS; i++) {
    let four = four_of(packed[i], packed[FOURS], i);
    for (var j = 0u; j < 4u; j++) { values[4u * i + j] = four[j]; }
  }
  return values;
}
fn four_in(values: ptr<function, array<f32, UNIT>>, i: u32) -> vec4<f32> {
  return vec4<f32>((*values)[4u * i], (*values)[4u * i + 1u], (*values)[4u * i + 2u], (*values)[4u * i + 3u]);
}

// cache_q4: keys and values as integers of 4 bits, spliced into the kernels that read or write them. Groups of 32
// values are multiplied by a Hadamard matrix first, which spreads single large values over the group and is its own
// inverse. So queries are rotated likewise, and sums of values are rotated back: see rotate. A group is the integers n,
// eight in a word, then the scale as float32: value = (2n − 15) · scale. See cache_q8.

const ROTATES: bool = true;
const ROTATE_FACTOR: f32 = 0.17677669529663687; // 1 / √32
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
  rotate_group(&fours);
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
  rotate_group(&fours);
  var values: array<f32, UNIT>;
  for (var i = 0u; i < GROUP; i++) { values[i] = fours[i / 4u][i % 4u]; }
  return values;
}

/// Times the Hadamard matrix of 32 values, divided by √32 last: no sum follows that a compiler could join with it, so
/// that all kernels give the same bits.
fn rotate_group(fours: ptr<function, array<vec4<f32>, 8>>) {
  for (var i = 0u; i < 8u; i++) { (*fours)[i] = rotate_lanes((*fours)[i]); }
  for (var half = 1u; half < 8u; half *= 2u) {
    for (var i = 0u; i < 4u; i++) {
      let at = i / half * 2u * half + i % half;
      let a = (*fours)[at];
      let b = (*fours)[at + half];
      (*fours)[at] = a + b;
      (*fours)[at + half] = a - b;
    }
  }
  for (var i = 0u; i < 8u; i++) { (*fours)[i] *= ROTATE_FACTOR; }
}
/// Its part within four values, not divided.
fn rotate_lanes(x: vec4<f32>) -> vec4<f32> {
  let y = vec4<f32>(x.x + x.y, x.x - x.y, x.z + x.w, x.z - x.w);
  return vec4<f32>(y.xy + y.zw, y.xy - y.zw);
}
/// The sign of four `to` in the sum for four `from`.
fn rotate_sign(a: u32, b: u32) -> f32 { return select(1.0, -1.0, countOneBits(a & b & 7u) % 2u == 1u); }

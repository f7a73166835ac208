// bytes: reads of packed weights at any byte. Spliced into every kernel that takes a quantized matrix `w`.
//
// Blocks of 18, 34, 210 … bytes do not begin at multiples of 4, so every read may straddle two words. Buffers of
// weights end with padding that such a read may touch; for types with a grid, the grid comes last.

/// Eight neighbouring weights.
struct Eight { lo: vec4<f32>, hi: vec4<f32> }

fn byte_at(i: u32) -> u32 {
  return (w[i >> 2u] >> ((i & 3u) * 8u)) & 0xffu;
}

/// The float16 at an even byte.
fn half_at(i: u32) -> f32 {
  return unpack2x16float(w[i >> 2u] >> ((i & 2u) * 8u)).x;
}

/// Four bytes from any byte.
fn word_at(i: u32) -> u32 {
  let shift = (i & 3u) * 8u;
  let low = w[i >> 2u];
  if (shift == 0u) { return low; }
  return (low >> shift) | (w[(i >> 2u) + 1u] << (32u - shift));
}

/// Sixteen bytes from any byte. Neighbouring threads read at different shifts, so that a branch would cost both ways.
fn words_at(i: u32) -> vec4<u32> {
  let at = i >> 2u;
  let shift = (i & 3u) * 8u;
  let low = vec4<u32>(w[at], w[at + 1u], w[at + 2u], w[at + 3u]);
  let next = vec4<u32>(low.yzw, w[at + 4u]);
  return (low >> vec4<u32>(shift)) | ((next << vec4<u32>(31u - shift)) << vec4<u32>(1u));
}

/// The bytes of a word, unsigned.
fn bytes_of(word: u32) -> vec4<f32> {
  return vec4<f32>(unpack4xU8(word));
}

/// The bytes of a word, signed.
fn signed_bytes_of(word: u32) -> vec4<f32> {
  return vec4<f32>(unpack4xI8(word));
}

/// The lowest four bits, one in each byte.
fn spread_bits(bits: u32) -> u32 {
  return ((bits & 15u) * 0x00204081u) & 0x01010101u;
}

/// Scale and minimum of 32 weights of q4_K and q5_K, 6 bits each, from 12 bytes (`get_scale_min_k4`, ggml-quants.c).
fn scale_min(i: u32, k: u32) -> vec2<f32> {
  if (k < 4u) { return vec2<f32>(vec2<u32>(byte_at(i + k) & 63u, byte_at(i + k + 4u) & 63u)); }
  let both = byte_at(i + k + 4u);
  let scale = (both & 15u) | ((byte_at(i + k - 4u) >> 6u) << 4u);
  let least = (both >> 4u) | ((byte_at(i + k) >> 6u) << 4u);
  return vec2<f32>(vec2<u32>(scale, least));
}

/// Index of the first word of a grid of `words` words, which ends the buffer.
fn grid_word(words: u32) -> u32 {
  return arrayLength(&w) - words;
}

/// Signs of eight weights from 7 bits: the eighth makes the number of negative ones even (`ksigns_iq2xs`,
/// ggml-common.h).
fn even_signs(bits: u32) -> u32 {
  return bits | ((countOneBits(bits) & 1u) << 7u);
}

/// Eight levels of a grid, negative where their bit of `signs` is set, times `scale`.
fn signed_point(lo: u32, hi: u32, signs: u32, scale: f32) -> Eight {
  let negative_lo = (vec4<u32>(signs) & vec4<u32>(1u, 2u, 4u, 8u)) != vec4<u32>();
  let negative_hi = (vec4<u32>(signs) & vec4<u32>(16u, 32u, 64u, 128u)) != vec4<u32>();
  return Eight(
    bytes_of(lo) * select(vec4<f32>(scale), vec4<f32>(-scale), negative_lo),
    bytes_of(hi) * select(vec4<f32>(scale), vec4<f32>(-scale), negative_hi),
  );
}

// tq1_0: w = d · (q − 1), five digits of base 3 in a byte. Layout: `block_tq1_0` in ggml-common.h: 32 bytes of five
// digits, 16 bytes of five, 4 bytes of four; each digit position gives one weight per byte.
const BLOCK_LEN: u32 = 256u;
const BLOCK_BYTES: u32 = 54u;
const POWERS = array<u32, 5>(1u, 3u, 9u, 27u, 81u);

/// Four neighbouring weights, before d.
fn digits_at(block: u32, at: u32) -> vec4<f32> {
  var i = at & 31u;
  var digit = at >> 5u;
  if (at >= 240u) {
    i = 48u;
    digit = (at - 240u) >> 2u;
  } else if (at >= 160u) {
    i = 32u + (at & 15u);
    digit = (at - 160u) >> 4u;
  }
  let fractions = (unpack4xU8(word_at(block + i)) * POWERS[digit]) & vec4<u32>(255u);
  return vec4<f32>((fractions * 3u) >> vec4<u32>(8u)) - 1.0;
}

fn dequant8(block: u32, at: u32) -> Eight {
  let d = half_at(block + 52u);
  return Eight(d * digits_at(block, at), d * digits_at(block, at + 4u));
}

// tile_halves: float16 values for `tile_matrix`: x comes from `to_halves`, weights are rounded.
/// x: eight halves.
alias Given = vec4<u32>;
alias Element = f16;
alias Vector = vec4<u32>;
/// Values of a vector.
const PER: u32 = 8u;
var<workgroup> ws: array<Vector, BUFFERS * TILE_COLUMNS>; // (BUFFERS, COLUMNS, STRIDE)

/// Vectors of a row of x before its power of two.
fn fours() -> u32 {
  return (p.in_dim + 31u) / 32u * 4u;
}

/// Vector i of the row of x at a place, zeros from place `end` on.
fn x_vector(place: u32, end: u32, i: u32) -> Vector {
  if (place >= end) { return vec4<u32>(); }
  return x[x_row_of(place) * (fours() + 1u) + i];
}

/// Stores eight weights.
fn store_eight(at: u32, eight: Eight) {
  ws[at] = vec4<u32>(
    pack2x16float(eight.lo.xy), pack2x16float(eight.lo.zw), pack2x16float(eight.hi.xy), pack2x16float(eight.hi.zw));
}

/// The power of two of the row of x at a place.
fn scale_of(place: u32, end: u32) -> f32 {
  if (place >= end) { return 0.0; }
  return bitcast<f32>(x[x_row_of(place) * (fours() + 1u) + fours()].x);
}

// tile_singles: float32 values for `tile_matrix`, for devices that do not multiply float16 with float32 sums.
alias Element = f32;
alias Vector = vec4<f32>;
/// Values of a vector.
const PER: u32 = 4u;
var<workgroup> ws: array<Vector, BUFFERS * TILE_COLUMNS>; // (BUFFERS, COLUMNS, STRIDE)

/// Vector i of the row of x at a place, zeros beyond the row and from place `end` on.
fn x_vector(place: u32, end: u32, i: u32) -> Vector {
  return x_four(place, end, 4u * i);
}

/// Stores eight weights.
fn store_eight(at: u32, eight: Eight) {
  ws[at] = eight.lo;
  ws[at + 1u] = eight.hi;
}

fn scale_of(place: u32, end: u32) -> f32 {
  return 1.0;
}

// x_four: reads float32 values of x, spliced before `tile_floats` and `tile_singles`.
alias Given = f32;

/// Four values from `i` of the row of x at a place, zeros beyond the row and from place `end` on.
fn x_four(place: u32, end: u32, i: u32) -> vec4<f32> {
  var four = vec4<f32>();
  if (place >= end) { return four; }
  let at = x_row_of(place) * p.in_dim + i;
  if (i + 4u <= p.in_dim) { return vec4<f32>(x[at], x[at + 1u], x[at + 2u], x[at + 3u]); }
  for (var j = 0u; j < 4u; j++) {
    if (i + j < p.in_dim) { four[j] = x[at + j]; }
  }
  return four;
}

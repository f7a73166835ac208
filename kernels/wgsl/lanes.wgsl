// lanes: a row of a state, divided among `p.lanes` neighbouring threads, spliced into the recurrent kernels. A thread
// has up to 16 values: the ones at `lane`, `lane + p.lanes`, … Expects Params with `lanes` and `width`, the values of a
// row, and a workgroup of WG threads.

/// Sums of a thread, twice: a row of the run uses the half that the previous one did not.
var<workgroup> parts: array<vec4<f32>, 2u * WG>;

/// The column in its row of component `i` of a thread's `column`th vec4. A thread has zeros for columns beyond the row.
fn at_lane(lane: u32, column: u32, i: u32) -> u32 { return lane + p.lanes * (4u * column + i); }

fn dot_lanes(a: mat4x4<f32>, b: mat4x4<f32>) -> f32 {
  return dot(a[0], b[0]) + dot(a[1], b[1]) + dot(a[2], b[2]) + dot(a[3], b[3]);
}

fn multiply_lanes(a: mat4x4<f32>, b: mat4x4<f32>) -> mat4x4<f32> {
  return mat4x4<f32>(a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]);
}

fn exp_lanes(a: mat4x4<f32>) -> mat4x4<f32> {
  return mat4x4<f32>(exp(a[0]), exp(a[1]), exp(a[2]), exp(a[3]));
}

/// Sums over all threads of a row; each of them gets the result. @param turn number of the call: its parity counts
fn sum_lanes(part: vec4<f32>, t: u32, turn: u32) -> vec4<f32> {
  let half = (turn % 2u) * WG;
  parts[half + t] = part;
  workgroupBarrier();
  let first = half + t / p.lanes * p.lanes;
  var total = vec4<f32>();
  for (var i = 0u; i < p.lanes; i++) { total += parts[first + i]; }
  return total;
}

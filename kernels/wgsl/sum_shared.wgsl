// sum_shared: sums over all 64 threads of a workgroup through its memory, spliced into the matrix-vector kernels.

/// What a thread is told of itself.
struct Thread {
  @builtin(local_invocation_index) t: u32,
}
var<workgroup> sums: array<vec4<f32>, 256>; // (rows, threads)

/// Σ of the first `rows` columns over all threads, for each of them: eight threads add eight values each, and everyone
/// adds those eight. A barrier must stand between two calls.
fn sum_all(values: mat4x4<f32>, rows: u32, thread: Thread) -> mat4x4<f32> {
  for (var r = 0u; r < rows; r++) { sums[r * 64u + thread.t] = values[r]; }
  workgroupBarrier();
  if (thread.t < 8u * rows) {
    var part = vec4<f32>();
    for (var j = 0u; j < 8u; j++) { part += sums[thread.t * 8u + j]; }
    sums[thread.t * 8u] = part;
  }
  workgroupBarrier();
  var totals = mat4x4<f32>();
  for (var r = 0u; r < rows; r++) {
    for (var j = 0u; j < 8u; j++) { totals[r] += sums[r * 64u + j * 8u]; }
  }
  return totals;
}

// sum_shared: sums over all threads of a workgroup through its memory, spliced into the matrix-vector kernels.

/// What a thread is told of itself.
struct Thread {
  @builtin(local_invocation_index) t: u32,
}
/// A thread's part of each sum: (ROWS, COLUMNS).
alias Sums = array<f32, ROWS * COLUMNS>;
/// How many threads add up the parts of a sum.
const ADDERS: u32 = 8u;
var<workgroup> parts: array<f32, ROWS * COLUMNS * WG>; // (rows, columns, threads)

/// Thread r · COLUMNS + c gets the sum of row r and column c, where r is one of the first `rows`. A barrier must stand
/// between two calls.
fn sum_all(sums: ptr<function, Sums>, rows: u32, thread: Thread) -> f32 {
  for (var i = 0u; i < ROWS * COLUMNS; i++) {
    if (i < rows * COLUMNS) { parts[i * WG + thread.t] = (*sums)[i]; }
  }
  workgroupBarrier();
  for (var i = thread.t; i < rows * COLUMNS * ADDERS; i += WG) {
    let first = (i / ADDERS) * WG + i % ADDERS;
    var part = 0.0;
    for (var j = 0u; j < WG; j += ADDERS) { part += parts[first + j]; }
    parts[first] = part;
  }
  workgroupBarrier();
  var total = 0.0;
  if (thread.t < rows * COLUMNS) {
    for (var j = 0u; j < ADDERS; j++) { total += parts[thread.t * WG + j]; }
  }
  return total;
}

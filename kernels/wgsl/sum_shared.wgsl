// sum_shared: sums over all threads of a workgroup through its memory, spliced into the matrix-vector kernels.

/// A thread's built-in values.
struct Thread {
  @builtin(local_invocation_index) t: u32,
}
/// A thread's part of each sum: (ROWS, TERMS).
alias Sums = array<f32, ROWS * TERMS>;
/// Number of threads that sum the parts of a sum.
const ADDERS: u32 = 8u;
var<workgroup> parts: array<f32, ROWS * TERMS * WG>; // (rows, terms, threads)

/// Thread r · COLUMNS + c gets the sum of row r and column c, for the first `rows` rows. A barrier must be between two
/// calls.
fn sum_all(sums: ptr<function, Sums>, rows: u32, thread: Thread) -> f32 {
  for (var i = 0u; i < ROWS * TERMS; i++) {
    if (i < rows * TERMS && is_summed(i)) { parts[i * WG + thread.t] = (*sums)[i]; }
  }
  workgroupBarrier();
  for (var i = thread.t; i < rows * TERMS * ADDERS; i += WG) {
    if (!is_summed(i / ADDERS)) { continue; }
    let first = (i / ADDERS) * WG + i % ADDERS;
    var part = 0.0;
    for (var j = 0u; j < WG; j += ADDERS) { part += parts[first + j]; }
    parts[first] = part;
  }
  workgroupBarrier();
  if (thread.t >= rows * COLUMNS) { return 0.0; }
  return sum_of((thread.t / COLUMNS) * TERMS + thread.t % COLUMNS, thread);
}

/// A sum from the last `sum_all`.
fn sum_of(term: u32, thread: Thread) -> f32 {
  var total = 0.0;
  for (var j = 0u; j < ADDERS; j++) { total += parts[term * WG + j]; }
  return total;
}

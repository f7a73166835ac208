// sum_subgroups: sums over all threads of a workgroup by subgroups of any size, as `sum_shared` without. Wants the
// feature `subgroups` and the language feature `subgroup_id`.

/// What a thread is told of itself.
struct Thread {
  @builtin(local_invocation_index) t: u32,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(num_subgroups) subgroups: u32,
}
/// A thread's part of each sum: (ROWS, COLUMNS).
alias Sums = array<f32, ROWS * COLUMNS>;
/// Subgroups of a workgroup at most: none is smaller than four threads. (WebGPU, subgroupMinSize)
const SUBGROUPS: u32 = WG / 4u;
var<workgroup> parts: array<f32, ROWS * COLUMNS * SUBGROUPS>; // (rows, columns, subgroups)

/// Thread r · COLUMNS + c gets the sum of row r and column c, where r is one of the first `rows`. A barrier must stand
/// between two calls.
fn sum_all(sums: ptr<function, Sums>, rows: u32, thread: Thread) -> f32 {
  for (var i = 0u; i < ROWS * COLUMNS; i++) {
    if (i >= rows * COLUMNS) { break; }
    let part = subgroupAdd((*sums)[i]);
    if (subgroupElect()) { parts[i * SUBGROUPS + thread.subgroup] = part; }
  }
  workgroupBarrier();
  var total = 0.0;
  if (thread.t < rows * COLUMNS) {
    for (var j = 0u; j < thread.subgroups; j++) { total += parts[thread.t * SUBGROUPS + j]; }
  }
  return total;
}

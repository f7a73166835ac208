// sum_subgroups: sums over all threads of a workgroup by subgroups of any size, like `sum_shared` without them.
// Requires the feature `subgroups` and the language feature `subgroup_id`.

/// A thread's built-in values.
struct Thread {
  @builtin(local_invocation_index) t: u32,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(num_subgroups) subgroups: u32,
}
/// A thread's part of each sum: (ROWS, TERMS).
alias Sums = array<f32, ROWS * TERMS>;
/// Maximum subgroups of a workgroup: each has at least four threads. (WebGPU, subgroupMinSize)
const SUBGROUPS: u32 = WG / 4u;
var<workgroup> parts: array<f32, ROWS * TERMS * SUBGROUPS>; // (rows, terms, subgroups)

/// Thread r · COLUMNS + c gets the sum of row r and column c, for the first `rows` rows. A barrier must be between two
/// calls.
fn sum_all(sums: ptr<function, Sums>, rows: u32, thread: Thread) -> f32 {
  for (var i = 0u; i < ROWS * TERMS; i++) {
    if (i >= rows * TERMS) { break; }
    if (!is_summed(i)) { continue; }
    let part = subgroupAdd((*sums)[i]);
    if (subgroupElect()) { parts[i * SUBGROUPS + thread.subgroup] = part; }
  }
  workgroupBarrier();
  if (thread.t >= rows * COLUMNS) { return 0.0; }
  return sum_of((thread.t / COLUMNS) * TERMS + thread.t % COLUMNS, thread);
}

/// A sum from the last `sum_all`.
fn sum_of(term: u32, thread: Thread) -> f32 {
  var total = 0.0;
  for (var j = 0u; j < thread.subgroups; j++) { total += parts[term * SUBGROUPS + j]; }
  return total;
}

// sum_subgroups: sums over all 64 threads of a workgroup by subgroups of any size, as `sum_shared` without. Wants the
// feature `subgroups` and the language feature `subgroup_id`.

/// What a thread is told of itself.
struct Thread {
  @builtin(local_invocation_index) t: u32,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(num_subgroups) subgroups: u32,
}
var<workgroup> sums: array<vec4<f32>, 256>; // (rows, subgroups)

/// Σ of the first `rows` columns over all threads, for each of them. A barrier must stand between two calls.
fn sum_all(values: mat4x4<f32>, rows: u32, thread: Thread) -> mat4x4<f32> {
  for (var r = 0u; r < rows; r++) {
    let part = subgroupAdd(values[r]);
    if (subgroupElect()) { sums[r * 64u + thread.subgroup] = part; }
  }
  workgroupBarrier();
  var totals = mat4x4<f32>();
  for (var r = 0u; r < rows; r++) {
    for (var j = 0u; j < thread.subgroups; j++) { totals[r] += sums[r * 64u + j]; }
  }
  return totals;
}

// matrices: the types of subgroup matrices, spliced into the kernels that multiply them, which have Element. The sizes
// are the device's. WIDTH is the size of its subgroups.
const M: u32 = 8u; // matrix: m
const N: u32 = 8u; // matrix: n
const K: u32 = 8u; // matrix: k
const WIDTH: u32 = 8u; // matrix: width

/// A thread's built-in values.
struct Thread {
  @builtin(local_invocation_index) t: u32,
  @builtin(subgroup_id) subgroup: u32,
}
alias Left = subgroup_matrix_left<Element, K, M>;
alias Right = subgroup_matrix_right<Element, N, K>;
alias Sums = subgroup_matrix_result<f32, N, M>;

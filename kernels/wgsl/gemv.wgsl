// gemv: the size of a workgroup of the matrix-vector kernels, spliced before `sum` and `product`. ROWS · COLUMNS is at
// most WG.

/// Threads of a workgroup.
const WG: u32 = 64u; // tuned: threads
/// Neighbouring rows of w, and so columns of y, per workgroup.
const COLUMNS: u32 = 4u; // tuned: columns

/// The first column of a workgroup.
fn first_column(group: vec3<u32>, groups: vec3<u32>) -> u32 {
  return (group.z * groups.x + group.x) * COLUMNS;
}

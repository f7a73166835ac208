// rotate: rotates one head in workgroup memory, spliced into kernels after the parts of `rotation`. They have WG.

var<workgroup> rotating: array<f32, 640>;

/// Rotates the first `dim` values of `rotating`, without the factor. All threads call it after they wrote it.
fn rotate(dim: u32, block: u32, t: u32) {
  workgroupBarrier();
  for (var half = 1u; half < block; half *= 2u) {
    for (var i = t; i < dim / 2u; i += WG) {
      let at = i / half * 2u * half + i % half;
      let a = rotating[at];
      let b = rotating[at + half];
      rotating[at] = a + b;
      rotating[at + half] = a - b;
    }
    workgroupBarrier();
  }
}

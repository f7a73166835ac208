// rotation: heads in 8 and in 4 bits are multiplied by a Hadamard matrix before they are rounded, which spreads single
// large values over the head and is its own inverse. So queries are rotated likewise, and sums of values are rotated
// back. Spliced after the caches of few bits. The CPU keeps the same: `rotate` of kernels/simd/ops/four-bits.h.

const ROTATES: bool = true;

/// Neighbouring values of a head that one matrix rotates: the largest power of two that divides its size. Values that
/// are parts of keys are rotated with them: `skip` is the part before.
fn rotated_block(dim: u32, skip: u32) -> u32 {
  let both = dim | skip;
  return both & (~both + 1u);
}
/// 1 / √block, exact for even powers. Kernels multiply by it last, and no sum follows that a compiler could fuse with
/// the product, so all kernels give the same bits.
fn rotation_factor(block: u32) -> f32 {
  let power = firstTrailingBit(block);
  return bitcast<f32>((127u - power / 2u) << 23u) * select(1.0, 0.7071067811865476, power % 2u == 1u);
}
/// The part of a rotation within four values, without the factor.
fn rotate_lanes(x: vec4<f32>) -> vec4<f32> {
  let y = vec4<f32>(x.x + x.y, x.x - x.y, x.z + x.w, x.z - x.w);
  return vec4<f32>(y.xy + y.zw, y.xy - y.zw);
}

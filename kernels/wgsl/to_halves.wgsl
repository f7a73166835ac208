// to_halves: rows of x as float16 values for subgroup matrices, each row divided by a power of two, so that its largest
// value is near the end of float16's range: none overflows, and the others keep as many bits as they can.
//
//   binding 0  x  storage, read        f32 (rows, dim)
//   binding 1  y  storage, read_write  f16 (rows, 8 · (fours + 1)) in vectors of eight, fours = 4 · ceil(dim / 32): the
//                 values, then zeros, and in the last vector's first word the row's power of two, a f32
//   binding 2  p  uniform              Params
//   dispatch   (1, rows, 1), 128 threads each
//   oracle     the values of x; tolerance 2^-24 of a row's largest abs + 2^-11 rel; with NaN or infinity, all are NaN
struct Params {
  dim: u32,
}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> p: Params;
const WG: u32 = 128u;
const INFINITY: u32 = 0x7f800000u;
const NAN_BITS: u32 = 0x7fc00000u;
var<workgroup> most: array<u32, WG>;

fn scaled(at: u32, i: u32, factor: f32) -> f32 {
  if (i >= p.dim) { return 0.0; }
  return x[at + i] * factor;
}

fn pair(at: u32, i: u32, factor: f32) -> u32 {
  return pack2x16float(vec2<f32>(scaled(at, i, factor), scaled(at, i + 1u, factor)));
}

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  let at = group.y * p.dim;
  var own = 0u;
  // The bits of floats without their sign are in the order of their values, and NaN comes last.
  for (var i = t; i < p.dim; i += WG) { own = max(own, bitcast<u32>(x[at + i]) & 0x7fffffffu); }
  most[t] = own;
  workgroupBarrier();
  for (var half = WG / 2u; half > 0u; half /= 2u) {
    if (t < half) { most[t] = max(most[t], most[t + half]); }
    workgroupBarrier();
  }
  let bits = most[0];
  // The exponents of the power of two and of its inverse. The largest scaled value has 14: it is below 32,768.
  let exponent = max(bits >> 23u, 15u) - 14u;
  let factor = bitcast<f32>((254u - exponent) << 23u);
  let fours = (p.dim + 31u) / 32u * 4u;
  let first = group.y * (fours + 1u);
  for (var i = t; i < fours; i += WG) {
    let k = 8u * i;
    y[first + i] = vec4<u32>(
      pair(at, k, factor), pair(at, k + 2u, factor), pair(at, k + 4u, factor), pair(at, k + 6u, factor));
  }
  if (t == 0u) { y[first + fours] = vec4<u32>(select(exponent << 23u, NAN_BITS, bits >= INFINITY), 0u, 0u, 0u); }
}

// products: queries by keys in workgroup memory, spliced into the kernels that score tiles of keys. They have `queries`
// (rows, STRIDE) and `tile` (keys, STRIDE), and load a part of both at a time.

const DEPTH: u32 = 8u; // vec4s of a key, or of a query, in workgroup memory at once
const STRIDE: u32 = 9u; // DEPTH plus one, to keep threads in different banks

fn query_four(at: u32, i: u32) -> vec4<f32> {
  if (p.head_dim % 4u == 0u) { return q[(at + i) / 4u]; }
  var four = vec4<f32>();
  for (var j = 0u; j < min(4u, p.head_dim - i); j++) { four[j] = q[(at + i + j) / 4u][(at + i + j) % 4u]; }
  return four;
}

/// Σ query · key of four rows (lanes) by four keys (columns), from workgroup memory.
fn products(quad: u32, k: u32, deep: u32) -> mat4x4<f32> {
  var sums = mat4x4<f32>();
  for (var d = 0u; d < deep; d++) {
    let at = quad * 4u * STRIDE + d;
    let four = mat4x4<f32>(queries[at], queries[at + STRIDE], queries[at + 2u * STRIDE], queries[at + 3u * STRIDE]);
    let key = k * STRIDE + d;
    sums[0] += tile[key] * four;
    sums[1] += tile[key + 16u * STRIDE] * four;
    sums[2] += tile[key + 32u * STRIDE] * four;
    sums[3] += tile[key + 48u * STRIDE] * four;
  }
  return sums;
}

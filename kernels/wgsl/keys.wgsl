// keys: reads of one head's keys, spliced into the kernels that compute scores.

fn key_at(i: u32) -> vec4<f32> { return four_of(keys[four_place(i)], keys[scale_place(i)], i); }

/// Four values of a key from `i`, zeros beyond its end. @param at start of the key
fn key_four(at: u32, i: u32) -> vec4<f32> {
  if (p.head_dim % 4u == 0u) { return key_at((at + i) / 4u); }
  var four = vec4<f32>();
  for (var j = 0u; j < min(4u, p.head_dim - i); j++) {
    let from_first = at + i + j;
    four[j] = key_at(from_first / 4u)[from_first % 4u];
  }
  return four;
}

// heads: reads of one head's values, and transformations of scores, spliced into the attention kernels after `keys`.

fn value_at(i: u32) -> vec4<f32> { return four_of(values[four_place(i)], values[scale_place(i)], i); }

/// Four values of a value from `i`, zeros beyond its end. @param at start of the value
fn value_four(at: u32, i: u32) -> vec4<f32> {
  if ((p.value_dim | at) % 4u == 0u) { return value_at((at + i) / 4u); }
  var four = vec4<f32>();
  for (var j = 0u; j < min(4u, p.value_dim - i); j++) {
    let from_first = at + i + j;
    four[j] = value_at(from_first / 4u)[from_first % 4u];
  }
  return four;
}

/// Beyond 15 the cap is reached; some drivers return NaN for tanh of large numbers.
fn capped(score: vec4<f32>) -> vec4<f32> {
  if (p.soft_cap == 0.0) { return score; }
  return p.soft_cap * tanh(clamp(score / p.soft_cap, vec4<f32>(-15.0), vec4<f32>(15.0)));
}

/// A lower bound of all scores. Finite, to avoid inf − inf.
const FLOOR: f32 = -1e30;

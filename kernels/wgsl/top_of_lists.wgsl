// top_of_lists: the `keep` best of every 1,024 tokens in a row's lists from `top_of_logits` or this kernel, best first.
//
//   binding 0  x       storage, read        vec2 of rising bits and id, (rows, count)
//   binding 1  y       storage, read_write  the same, (rows, y_stride), from y_first
//   binding 2  p       uniform              Params
//   dispatch   (ceil(count / 1024), rows with a request, 1), 256 threads each
//   oracle     test/engine/text/sampling/top-k.ts topKOf; tolerance 0
struct Params { count: u32, keep: u32, y_stride: u32, y_first: u32 }
@group(0) @binding(0) var<storage, read> x: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec2<u32>>;
@group(0) @binding(2) var<uniform> p: Params;
//#splice best

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
  for (var i = t; i < LEN; i += WG) {
    let at = group.x * LEN + i;
    tokens[i] = NONE;
    if (at < p.count) { tokens[i] = x[group.y * p.count + at]; }
  }
  keep_best(p.keep, t);
  if (t < p.keep) { y[group.y * p.y_stride + p.y_first + group.x * p.keep + t] = tokens[t]; }
}

// rope: rotates each head of x in place by its row's position.
//
//   binding 0  x      storage, read_write  f32 (rows, dim)
//   binding 1  turns  storage, read        f32 (positions, pairs, 2): cosines and sines, magnitude included
//   binding 2  batch  storage, read        see batch.ts
//   binding 3  p      uniform              Params
//   dispatch   (ceil(heads · pairs / 64), rows, 1), 64 threads of one pair each
//   oracle     src/engine/backends/cpu/ops.ts rope; tolerance 1e-6 abs + 1e-6 rel
struct Params {
  dim: u32,
  heads: u32,
  head_dim: u32,
  at: u32, // first value of a head that rotates
  pairs: u32,
  step: u32,
  apart: u32,
  time: u32, // pairs by the part of a position that rotates them
  height: u32,
  width: u32,
  interleaved: u32,
}
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read> turns: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(3) var<uniform> p: Params;
//#splice turn

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let head = id.x / p.pairs;
  let i = id.x % p.pairs;
  if (head >= p.heads) { return; }
  let turn = turn_of(i, batch[3u + 3u * id.y].xyz);
  let a = id.y * p.dim + head * p.head_dim + p.at + i * p.step;
  let b = a + p.apart;
  let u = x[a];
  let v = x[b];
  x[a] = u * turn.x - v * turn.y;
  x[b] = u * turn.y + v * turn.x;
}

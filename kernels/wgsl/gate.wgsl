// gate: up = the gating of gate and up: act(gate) ⊙ up within limits, or swiglu_oai.
//
//   binding 0  gate   storage, read        f32 (rows, dim)
//   binding 1  up     storage, read_write  f32 (rows, dim)
//   binding 2  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/ops.ts gatedMlp; tolerance 1e-6 abs + 1e-5 rel
struct Params { dim: u32, kind: u32, gate_limit: f32, up_limit: f32 }
@group(0) @binding(0) var<storage, read> gate: array<f32>;
@group(0) @binding(1) var<storage, read_write> up: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;
//#splice activation

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= p.dim) { return; }
  let at = id.y * p.dim + id.x;
  up[at] = gated(p.kind, p.gate_limit, p.up_limit, gate[at], up[at]);
}

// previous_row: the row before each row of a sequence, which keeps its last row. Only the first row's workgroups touch
// what is kept: they read it, then write what the next run needs.
//
//   binding 0  x      storage, read        f32 (rows, dim)
//   binding 1  batch  storage, read        see batch.ts
//   binding 2  state  storage, read_write  f32 (slots, dim)
//   binding 3  y      storage, read_write  f32 (rows, dim)
//   binding 4  p      uniform              Params
//   dispatch   (ceil(dim / 64), rows, 1), 64 threads of one value each
//   oracle     src/engine/backends/cpu/recurrent.ts previousRow; tolerance 0
struct Params { dim: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> state: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= p.dim) { return; }
  let reach = batch[2u + 3u * id.y]; // first row of the sequence, end
  if (id.y > reach.x) {
    y[id.y * p.dim + i] = x[(id.y - 1u) * p.dim + i];
    return;
  }
  let start = batch[1u + 3u * id.y]; // token, slot, cell
  let kept = start.y * p.dim + i;
  y[id.y * p.dim + i] = select(state[kept], 0.0, start.z == 0u);
  state[kept] = x[(min(reach.y, batch[0].x) - 1u) * p.dim + i];
}

// moe_group: sorts the choices of a run by expert, and divides each expert's into tiles of at most 32. The order of an
// expert's choices is arbitrary: a result does not depend on its place.
//
//   binding 0  choices storage, read       u32 (rows, used, 2): expert, and its share
//   binding 1  order  storage, read_write  u32 (rows · used): choices by expert
//   binding 2  tiles  storage, read_write  u32 (1 + rows · used, 2): how many tiles and 0, then of each its expert and
//              its length in the upper half, and where in `order` it begins
//   binding 3  batch  storage, read        see batch.ts
//   binding 4  p      uniform              Params
//   dispatch   (1, 1, 1), 256 threads; at most 1,024 experts
//   oracle     src/engine/backends/cpu/ops.ts moe; tolerance 0
struct Params {
  experts: u32,
  used: u32,
  wanted: u32, // 1 if the rows are the wanted ones
  cyclic: u32, // 1: choice i is of expert i modulo `experts`, and `choices` is not read
}
@group(0) @binding(0) var<storage, read> choices: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> order: array<u32>;
@group(0) @binding(2) var<storage, read_write> tiles: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> batch: array<vec4<u32>>;
@group(0) @binding(4) var<uniform> p: Params;
const WG: u32 = 256u;
const TILE: u32 = 32u;
var<workgroup> counts: array<atomic<u32>, 1024>;
var<workgroup> ends: array<atomic<u32>, 1024>;

fn expert_of(choice: u32) -> u32 {
  if (p.cyclic == 1u) { return choice % p.experts; }
  return choices[choice].x;
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) t: u32) {
  for (var e = t; e < p.experts; e += WG) { atomicStore(&counts[e], 0u); } // workgroup memory is not initialized
  workgroupBarrier();
  let count = select(batch[0].x, batch[0].y, p.wanted == 1u) * p.used;
  for (var i = t; i < count; i += WG) { atomicAdd(&counts[expert_of(i)], 1u); }
  workgroupBarrier();
  if (t == 0u) {
    var first = 0u;
    var tile = 0u;
    for (var e = 0u; e < p.experts; e++) {
      atomicStore(&ends[e], first);
      let end = first + atomicLoad(&counts[e]);
      for (; first < end; first = min(first + TILE, end)) {
        tile += 1u;
        tiles[tile] = vec2<u32>(e | (min(TILE, end - first) << 16u), first);
      }
    }
    tiles[0] = vec2<u32>(tile, 0u);
  }
  workgroupBarrier();
  for (var i = t; i < count; i += WG) { order[atomicAdd(&ends[expert_of(i)], 1u)] = i; }
}

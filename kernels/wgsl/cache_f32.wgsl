// cache_f32: keys and values in float32, spliced into the kernels that read or write them.

/// Four values, the unit of reads.
alias Four = vec4<f32>;
fn four_of(four: Four) -> vec4<f32> { return four; }
fn four_from(four: vec4<f32>) -> Four { return four; }

/// UNIT values, the unit of writes.
alias Unit = f32;
const UNIT: u32 = 1u;
fn pack(first: f32, second: f32) -> Unit { return first; }
fn unpack(unit: Unit) -> vec2<f32> { return vec2<f32>(unit, 0.0); }

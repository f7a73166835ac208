// cache_f32: keys and values as they are, spliced into the kernels that read or write them.

/// Four values that are read at once.
alias Four = vec4<f32>;
fn four_of(four: Four) -> vec4<f32> { return four; }
fn four_from(four: vec4<f32>) -> Four { return four; }

/// What is written at once: UNIT values.
alias Unit = f32;
const UNIT: u32 = 1u;
fn pack(first: f32, second: f32) -> Unit { return first; }
fn unpack(unit: Unit) -> vec2<f32> { return vec2<f32>(unit, 0.0); }

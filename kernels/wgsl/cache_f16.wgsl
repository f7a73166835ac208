// cache_f16: keys and values rounded to float16, spliced into the kernels that read or write them. Requires no feature.

/// Four values, the unit of reads.
alias Four = vec2<u32>;
fn four_of(four: Four) -> vec4<f32> { return vec4<f32>(unpack2x16float(four.x), unpack2x16float(four.y)); }
fn four_from(four: vec4<f32>) -> Four { return vec2<u32>(pack2x16float(four.xy), pack2x16float(four.zw)); }

/// UNIT values, the unit of writes.
alias Unit = u32;
const UNIT: u32 = 2u;
fn pack(first: f32, second: f32) -> Unit { return pack2x16float(vec2<f32>(first, second)); }
fn unpack(unit: Unit) -> vec2<f32> { return unpack2x16float(unit); }

// unrotated: replaces `rotation` for caches of values as they are.

const ROTATES: bool = false;
const JOINS: bool = false;
fn join_fours(first: Four, second: Four) -> Four { return first; }
fn rotated_block(dim: u32, skip: u32) -> u32 { return 1u; }
fn rotation_factor(block: u32) -> f32 { return 1.0; }
fn rotate_lanes(x: vec4<f32>) -> vec4<f32> { return x; }

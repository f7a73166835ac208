// unrotated: the parts of `cache_q4` that rotate, for caches of values as they are, spliced after them.

const ROTATES: bool = false;
const ROTATE_FACTOR: f32 = 1.0;
fn join_fours(first: Four, second: Four) -> Four { return first; }
fn rotate_group(fours: ptr<function, array<vec4<f32>, 8>>) {}
fn rotate_lanes(x: vec4<f32>) -> vec4<f32> { return x; }
fn rotate_sign(a: u32, b: u32) -> f32 { return 1.0; }

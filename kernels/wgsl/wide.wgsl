// wide: replaces `narrow` for keys of at most 640 values, and values of at most 512. Takes 15,872 bytes of workgroup
// memory, of the 16,384 that every device has.
const WG: u32 = 128u;
const TILE: u32 = 24u; // positions, at most WG
const KEY_FOURS: u32 = 160u; // vec4s of the longest key, at least WG

// narrow: sizes of the attention of few rows for heads of at most 256 values, spliced before `attend`.
const WG: u32 = 64u;
const TILE: u32 = 64u; // positions, at most WG
const KEY_FOURS: u32 = 64u; // vec4s of the longest key, at least WG

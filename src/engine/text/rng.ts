/**
 * Seeded random numbers: xoshiro128** (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2018),
 * which needs only 32-bit operations. The same seed gives the same numbers on every machine. Not for secrets.
 */

export interface Rng {
  /** The next 32 random bits, 0 … 2³² − 1. */
  uint32(): number;
  /** The next number in [0, 1), a multiple of 2⁻⁵³. Takes two draws of `uint32`. */
  float(): number;
  /** Continues as another generator will. */
  follow(other: Rng): void;
  /** Four words. */
  readonly state: Uint32Array;
}

const TWO_32 = 2 ** 32;
const GOLDEN_GAMMA = 0x9e3779b9; // 2³² / golden ratio, the increment of SplitMix

/** A generator whose numbers depend only on the integer `seed`; seeds are taken modulo 2⁶⁴. */
export function makeRng(seed: number): Rng {
  const low = seed >>> 0;
  const high = Math.floor(seed / TWO_32) >>> 0;
  const state = new Uint32Array(4);
  for (let i = 0; i < 4; i++) state[i] = mix(low + (i + 1) * GOLDEN_GAMMA) ^ mix(mix(high + 1) + i * GOLDEN_GAMMA);
  if (state.every((word) => word === 0)) state[0] = GOLDEN_GAMMA; // the one state that xoshiro never leaves
  return makeXoshiro128(state);
}

/** xoshiro128** from a given state of four words, not all zero; takes the array over. */
export function makeXoshiro128(state: Uint32Array): Rng {
  const s = new Int32Array(state.buffer, state.byteOffset, 4); // the same words: signed ones are never floats
  const uint32 = (): number => {
    const result = Math.imul(rotl(Math.imul(s[1]!, 5), 7), 9) >>> 0;
    const t = s[1]! << 9;
    s[2]! ^= s[0]!;
    s[3]! ^= s[1]!;
    s[1]! ^= s[2]!;
    s[0]! ^= s[3]!;
    s[2]! ^= t;
    s[3] = rotl(s[3]!, 11);
    return result;
  };
  const float = (): number => {
    const high = uint32() >>> 5; // 27 bits
    const low = uint32() >>> 6; // 26 bits
    return (high * 2 ** 26 + low) / 2 ** 53;
  };
  return { uint32, float, follow: (other) => state.set(other.state), state };
}

/** A seed from the system's source of randomness, 0 … 2³² − 1. */
export function randomSeed(): number {
  return crypto.getRandomValues(new Uint32Array(1))[0]!;
}

function rotl(x: number, bits: number): number {
  return (x << bits) | (x >>> (32 - bits));
}

/** MurmurHash3's 32-bit finalizer: a bijection in which every input bit changes about half of the output bits. */
function mix(x: number): number {
  let h = x | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

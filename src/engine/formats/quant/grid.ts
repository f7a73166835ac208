/**
 * The grids of the IQ types: sets of points of 4 or 8 weights, which a block references by index. llama.cpp found them
 * by clustering the weights of real models, so no formula gives them; but each is sorted, so one bit per possible point
 * is enough (the tables in ggml-common.h are 14 times as long).
 */

/** Weights of the three IQ2 grids. */
export const THREE_LEVELS = [8, 25, 43] as const;

interface GridShape {
  /** Weights per point. */
  readonly width: number;
  /** The possible values of a weight. */
  readonly levels: readonly number[];
}

/**
 * The points of a grid, in order.
 * @param bits base64: bit n is set if the point whose digits are n in base `levels.length`, lowest first, is in the
 * grid
 * @returns (points, width)
 */
export function unpackGrid({ width, levels }: GridShape, bits: string): Int8Array {
  const bytes = Uint8Array.fromBase64(bits);
  const weights: number[] = [];
  for (let code = 0; code < levels.length ** width; code++) {
    if (((bytes[code >> 3]! >> (code & 7)) & 1) === 0) continue;
    for (let k = 0, rest = code; k < width; k++, rest = Math.floor(rest / levels.length)) {
      weights.push(levels[rest % levels.length]!);
    }
  }
  return Int8Array.from(weights);
}

/** Signs of 8 weights from 7 bits: the eighth makes the number of negative ones even (`ksigns_iq2xs`). */
export function evenSigns(bits: number): number {
  let parity = bits ^ (bits >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return bits | ((parity & 1) << 7);
}

/** The little-endian word at byte `at`, any alignment; signed. */
export function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

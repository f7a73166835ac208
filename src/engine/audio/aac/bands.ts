/** Sampling rates of AAC, and the bands of its spectra at each. (ISO/IEC 14496-3, tables 4.129 to 4.147 and 4.156) */

/** By their index in headers. */
export const RATES = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350,
];

/** Bands of spectra at one sampling rate. */
export interface Bands {
  /** First coefficient of each band of a long window, then 1,024. */
  readonly long: readonly number[];
  /** First coefficient of each band of a short window, then 128. */
  readonly short: readonly number[];
  /** Bands that noise shaping may reach in long and in short windows. */
  readonly shapedLong: number;
  readonly shapedShort: number;
}

/** @param widths runs of bands of one width, such as `3×4 1×8`: three bands of 4 coefficients, and one of 8 */
function offsetsOf(widths: string): readonly number[] {
  const offsets = [0];
  for (const run of widths.split(" ")) {
    const [count, width] = run.split("×").map(Number) as [number, number];
    for (let i = 0; i < count; i++) offsets.push(offsets.at(-1)! + width);
  }
  return offsets;
}

const LONG = {
  96: offsetsOf("14×4 5×8 5×12 2×16 1×24 1×28 1×36 1×44 11×64"),
  64: offsetsOf("14×4 4×8 3×12 3×16 1×20 2×24 1×28 1×36 18×40"),
  48: offsetsOf("10×4 7×8 4×12 2×16 2×20 2×24 2×28 19×32 1×96"),
  32: offsetsOf("10×4 7×8 4×12 2×16 2×20 2×24 2×28 22×32"),
  24: offsetsOf("11×4 10×8 4×12 3×16 2×20 2×24 2×28 1×32 2×36 1×40 1×44 1×48 2×52 5×64"),
  16: offsetsOf("11×8 9×12 4×16 3×20 2×24 2×28 1×32 1×36 2×40 1×44 1×48 1×52 1×56 1×60 3×64"),
  8: offsetsOf("13×12 7×16 4×20 3×24 2×28 1×32 2×36 1×40 1×44 1×48 1×52 1×56 1×60 1×64 1×80"),
} as const;
const SHORT = {
  64: offsetsOf("6×4 3×8 1×16 1×28 1×36"),
  48: offsetsOf("5×4 3×8 3×12 3×16"),
  24: offsetsOf("7×4 3×8 2×12 2×16 1×20"),
  16: offsetsOf("8×4 2×8 2×12 1×16 2×20"),
  8: offsetsOf("7×4 4×8 1×12 1×16 2×20"),
} as const;

/** By the index of the sampling rate. */
export const BANDS: readonly Bands[] = [
  { long: LONG[96], short: SHORT[64], shapedLong: 31, shapedShort: 9 },
  { long: LONG[96], short: SHORT[64], shapedLong: 31, shapedShort: 9 },
  { long: LONG[64], short: SHORT[64], shapedLong: 34, shapedShort: 10 },
  { long: LONG[48], short: SHORT[48], shapedLong: 40, shapedShort: 14 },
  { long: LONG[48], short: SHORT[48], shapedLong: 42, shapedShort: 14 },
  { long: LONG[32], short: SHORT[48], shapedLong: 51, shapedShort: 14 },
  { long: LONG[24], short: SHORT[24], shapedLong: 46, shapedShort: 14 },
  { long: LONG[24], short: SHORT[24], shapedLong: 46, shapedShort: 14 },
  { long: LONG[16], short: SHORT[16], shapedLong: 42, shapedShort: 14 },
  { long: LONG[16], short: SHORT[16], shapedLong: 42, shapedShort: 14 },
  { long: LONG[16], short: SHORT[16], shapedLong: 42, shapedShort: 14 },
  { long: LONG[8], short: SHORT[8], shapedLong: 39, shapedShort: 14 },
  { long: LONG[8], short: SHORT[8], shapedLong: 39, shapedShort: 14 },
];

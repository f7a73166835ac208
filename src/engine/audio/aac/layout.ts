/** Windows and bands of a channel. (ISO/IEC 14496-3, 4.4.2.7) */
import type { Bands } from "./bands.ts";
import type { Bits } from "./bits.ts";

/** Samples of a packet, and coefficients of its spectra. */
export const FRAME = 1024;
export const SHORT_FRAME = 128;

/** A packet has one long window or eight short ones; `start` and `stop` are long ones beside short ones. */
export const SEQUENCE = { long: 0, start: 1, short: 2, stop: 3 } as const;

/** The windows of a channel's samples and the bands of its spectra. Two channels may share it. */
export interface Layout {
  /** A value of `SEQUENCE`. */
  readonly sequence: number;
  /** 0: sine, 1: Kaiser-Bessel. */
  readonly shape: number;
  /** Bands that have coefficients. */
  readonly bandCount: number;
  /** Coefficients of a window. */
  readonly windowSize: number;
  /** First coefficient of each band, and the end. */
  readonly offsets: readonly number[];
  /** Windows of each group, which share factors and codebooks. */
  readonly groups: readonly number[];
}

/** Throws if the packet is damaged. */
export function readLayout(bits: Bits, bands: Bands): Layout {
  bits.skip(1); // reserved
  const [sequence, shape] = [bits.read(2), bits.read(1)];
  const isShort = sequence === SEQUENCE.short;
  const offsets = isShort ? bands.short : bands.long;
  const bandCount = bits.read(isShort ? 4 : 6);
  if (bandCount >= offsets.length) throw new Error(`expected at most ${offsets.length - 1} bands, got ${bandCount}`);
  const groups = [1];
  for (let window = 1; isShort && window < 8; window++)
    if (bits.flag()) groups[groups.length - 1]!++;
    else groups.push(1);
  if (!isShort && bits.flag()) throw new Error("expected no prediction, got some");
  return { sequence, shape, bandCount, windowSize: isShort ? SHORT_FRAME : FRAME, offsets, groups };
}

/** Calls `visit` for each band of each group; `window` is the group's first. */
export function eachBand(
  { groups, bandCount, offsets }: Layout,
  visit: (band: { index: number; window: number; windows: number; from: number; to: number }) => void,
): void {
  let [index, window] = [0, 0];
  for (const windows of groups) {
    for (let band = 0; band < bandCount; band++)
      visit({ index: index++, window, windows, from: offsets[band]!, to: offsets[band + 1]! });
    window += windows;
  }
}

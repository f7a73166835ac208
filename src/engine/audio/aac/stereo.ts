/** Two channels that are stored as one and a difference. (ISO/IEC 14496-3, 4.6.8) */
import type { Bits } from "./bits.ts";
import { BOOK, type Channel } from "./channel.ts";
import { eachBand, type Layout } from "./layout.ts";

/** Returns for each band of each group whether it has the middle and half the difference in place of left and right. */
export function readMiddles(bits: Bits, { groups, bandCount }: Layout): readonly boolean[] {
  const kind = bits.read(2);
  if (kind === 3) throw new Error("expected middles for no, some or all bands, got the value 3");
  return Array.from({ length: groups.length * bandCount }, () => (kind === 1 ? bits.flag() : kind === 2));
}

/** Makes left and right of two channels of the same layout. */
export function joinChannels(left: Channel, right: Channel, middles: readonly boolean[]): void {
  eachBand(left.layout, ({ index, window, windows, from, to }) => {
    const [book, middle] = [right.books[index]!, middles[index]!];
    const isMiddle = middle && book < BOOK.noise && left.books[index]! < BOOK.noise;
    const isCopied = book === BOOK.likeLeft || book === BOOK.oppositeOfLeft;
    if (!isMiddle && !isCopied) return;
    const factor = right.factors[index]! * ((book === BOOK.likeLeft) === middle ? -1 : 1);
    for (let i = window; i < window + windows; i++) {
      const start = i * left.layout.windowSize;
      for (let at = start + from; at < start + to; at++) {
        const a = left.spectrum[at]!;
        const b = right.spectrum[at]!;
        if (isMiddle) left.spectrum[at] = a + b;
        right.spectrum[at] = isMiddle ? a - b : a * factor;
      }
    }
  });
}

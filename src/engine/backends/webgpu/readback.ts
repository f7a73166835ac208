/** The results of a run in one buffer, in sequence: all values of some rows, candidates of the others. */
import type { Offer, OfferWish } from "../../text/sampling/offer.ts";
import { readAnswer, type Chooser } from "./chooser.ts";
import type { PlannedResult } from "./record.ts";

/** Bytes of a buffer on the device; with a request, its candidates. */
interface Part {
  readonly buffer: GPUBuffer;
  readonly offset: number;
  readonly size: number;
  readonly wish: OfferWish | undefined;
}

/** The parts of a chunk. @param wishes by wanted row */
export function partsOf(
  wishes: readonly (OfferWish | undefined)[],
  { result: { buffer, dim }, chooser }: { result: PlannedResult; chooser: Chooser | undefined },
): Part[] {
  const parts: Part[] = [];
  let [whole, asked] = [0, 0]; // whole: start of a run of rows without a request
  for (let row = 0; row <= wishes.length; row++) {
    const wish = wishes[row];
    if (!wish && row < wishes.length) continue;
    if (row > whole) parts.push({ buffer, offset: 4 * dim * whole, size: 4 * dim * (row - whole), wish: undefined });
    if (wish) parts.push({ ...chooser!.answerAt(asked++, wish), wish }); // every request has a chooser
    whole = row + 1;
  }
  return parts;
}

/** Copies them to the start of `readback`; returns the number of bytes. */
export function copyParts(encoder: GPUCommandEncoder, parts: readonly Part[], readback: GPUBuffer): number {
  let at = 0;
  for (const { buffer, offset, size } of parts) {
    encoder.copyBufferToBuffer(buffer, offset, readback, at, size);
    at += size;
  }
  return at;
}

/** Values go to `out`, candidates are returned; undefined if a row reports a NaN logit. */
export function readParts(bytes: ArrayBuffer, parts: readonly Part[], out: Float32Array): Offer[] | undefined {
  const offers: Offer[] = [];
  let [at, done] = [0, 0];
  for (const { size, wish } of parts) {
    if (wish) {
      const offer = readAnswer(new Uint32Array(bytes, at, size / 4), wish);
      if (!offer) return undefined;
      offers.push(offer);
    } else {
      out.set(new Float32Array(bytes, at, size / 4), done);
      done += size / 4;
    }
    at += size;
  }
  return offers;
}

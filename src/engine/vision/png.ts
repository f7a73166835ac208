/** Removes the chunks of a PNG that the pixels do not need. (PNG third edition, 5) */

/** Names as big-endian numbers. tRNS is alpha, which is dropped. */
const [IHDR, PLTE, IDAT, IEND] = [0x49484452, 0x504c5445, 0x49444154, 0x49454e44];

/** The file without ancillary chunks, so that errors in them do no harm. */
export function withoutExtras(png: Uint8Array): Uint8Array<ArrayBuffer> {
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength);
  const kept = new Uint8Array(png.length);
  let [at, size] = [8, 8]; // after the signature
  kept.set(png.subarray(0, at));
  while (at + 8 <= png.length) {
    const chunk = png.subarray(at, at + 12 + view.getUint32(at));
    const kind = view.getUint32(at + 4);
    if (kind === IHDR || kind === PLTE || kind === IDAT || kind === IEND) {
      kept.set(chunk, size);
      size += chunk.length;
    }
    if (kind === IEND) break;
    at += chunk.length;
  }
  return kept.slice(0, size);
}

/**
 * Extracts the segments of a JPEG that its pixels need, for a third-party decoder (ITU-T T.81, annex B): one frame, of
 * the expected size. The decoder never gets other content of the file.
 */
import { broken, sizeText, type Size } from "./image.ts";

const [SOI, EOI, SOS, DHT, DQT, DRI, APP0, APP14] = [0xd8, 0xd9, 0xda, 0xc4, 0xdb, 0xdd, 0xe0, 0xee];
/** Huffman-coded, baseline to progressive. */
const FRAMES = [0xc0, 0xc1, 0xc2];
/** Other codings: lossless, hierarchical, arithmetic. */
const FOREIGN_FRAMES = [0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf];
/** The tables, and the two segments that define the components' colours. */
const KEPT = [DHT, DQT, DRI, APP0, APP14, SOS, ...FRAMES];
/** Markers without a segment: TEM and restarts. */
const isBare = (marker: number): boolean => marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7);

/**
 * Throws `bad_request` for a file that is cut off or holds a second frame, or whose frame has a size, coding or
 * components that the decoder does not read.
 * @param size that the frame must have; nothing is allocated for another
 */
export function cleanJpeg(jpeg: Uint8Array, size: Size): Uint8Array<ArrayBuffer> {
  const view = new DataView(jpeg.buffer, jpeg.byteOffset, jpeg.byteLength);
  const kept = new Uint8Array(jpeg.length + 4);
  kept.set([0xff, SOI]);
  let [from, to, frames] = [2, 2, 0];
  for (;;) {
    const at = nextMarker(jpeg, from);
    const marker = jpeg[at + 1];
    if (marker === undefined) throw broken("cut off");
    if (marker === EOI) break;
    const end = isBare(marker) || at + 4 > jpeg.length ? at + 2 : at + 2 + view.getUint16(at + 2);
    if (end > jpeg.length) throw broken("cut off");
    if (FOREIGN_FRAMES.includes(marker)) throw broken("lossless or arithmetic coding, which is not read");
    if (FRAMES.includes(marker)) checkFrame(view, at, size, ++frames);
    from = marker === SOS ? endOfScan(jpeg, end) : end;
    if (!KEPT.includes(marker)) continue;
    kept.set(jpeg.subarray(at, from), to);
    to += from - at;
  }
  kept.set([0xff, EOI], to);
  return kept.slice(0, to + 2);
}

/** The index of the next 0xff that a marker's code follows; skips bytes between segments. */
function nextMarker(jpeg: Uint8Array, from: number): number {
  let at = jpeg.indexOf(0xff, from);
  while (at >= 0 && (jpeg[at + 1] === 0xff || jpeg[at + 1] === 0)) at = jpeg.indexOf(0xff, at + 1);
  return at < 0 ? jpeg.length : at;
}

/** The end of the coded data: the next marker other than a restart. */
function endOfScan(jpeg: Uint8Array, from: number): number {
  let at = nextMarker(jpeg, from);
  while (at < jpeg.length && isBare(jpeg[at + 1]!)) at = nextMarker(jpeg, at + 2);
  return at;
}

function checkFrame(view: DataView, at: number, size: Size, frames: number): void {
  if (frames > 1) throw broken("a second frame");
  if (at + 10 > view.byteLength) throw broken("cut off");
  const own = { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
  const [bits, components] = [view.getUint8(at + 4), view.getUint8(at + 9)];
  if (own.width !== size.width || own.height !== size.height) throw broken(`a frame of ${sizeText(own)}`);
  if (bits !== 8) throw broken(`${bits} bits per sample, of which 8 are read`);
  if (components === 4) throw broken("colours for print (CMYK): save it as RGB");
  if (components !== 1 && components !== 3) throw broken(`${components} components, of which 1 or 3 are read`);
}

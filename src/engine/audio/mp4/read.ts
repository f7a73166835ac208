/**
 * MP4, M4A and QuickTime files, as phones, Macs and Safari record them: the packets of the first sound track. (ISO/IEC
 * 14496-12, boxes; 14496-14, esds; Opus in ISO base media, dOps; the QuickTime file format)
 *
 * A file has one table of all packets, or fragments that have a table each. Nothing is copied.
 */
import { boxesOf, findBox, nameAt, numberAt, signedAt, viewOf } from "./boxes.ts";
import { readDescription, type SoundCodec } from "./codec.ts";
import { fragmentPackets } from "./fragments.ts";

export interface Mp4Sound extends SoundCodec {
  /** The part to play, in seconds after the first packet's begin: without the encoder's start, and what a user cut. */
  readonly from: number;
  readonly to: number;
  /** Packets that are cut off are left out. */
  readonly packets: Iterable<Uint8Array>;
}

/** Throws if there is no sound track, or one that we cannot decode. */
export function readMp4(bytes: Uint8Array): Mp4Sound {
  const file = viewOf(bytes);
  const movie = findBox(file, "moov");
  if (!movie) throw new Error("expected the box 'moov', got none: the file is damaged or cut off");
  for (const { type, data: track } of boxesOf(movie)) {
    const handler = type === "trak" ? findBox(track, "mdia", "hdlr") : undefined;
    if (!handler || nameAt(handler, 8) !== "soun") continue;
    const table = findBox(track, "mdia", "minf", "stbl");
    const description = table && findBox(table, "stsd");
    if (!table || !description) throw new Error("expected a description of the sound track, got none");
    return { ...readDescription(description), ...playedPart(movie, track), packets: packetsOf(bytes, movie, track) };
  }
  throw new Error("expected a sound track, got none");
}

/** Boxes of version 1 have times of 64 bits. */
const isWide = (box: DataView): boolean => numberAt(box, 0, 1) === 1;

/** By the edit list, if it has one part. */
function playedPart(movie: DataView, track: DataView): { from: number; to: number } {
  const edits = findBox(track, "edts", "elst");
  const [movieHead, mediaHead] = [findBox(movie, "mvhd"), findBox(track, "mdia", "mdhd")];
  const parts = edits && movieHead && mediaHead ? playedParts(edits) : [];
  if (parts.length !== 1) return { from: 0, to: Infinity };
  const [{ length, start }] = parts as [Part];
  const from = start / timescale(mediaHead!); // there are parts
  return { from, to: length > 0 ? from + length / timescale(movieHead!) : Infinity };
}

interface Part {
  /** In the movie's units; 0: not known. */
  readonly length: number;
  /** In the track's units. */
  readonly start: number;
}

function playedParts(edits: DataView): Part[] {
  const size = isWide(edits) ? 8 : 4;
  const parts: Part[] = [];
  for (let at = 8; at + 2 * size <= edits.byteLength && parts.length < 2; at += 2 * size + 4) {
    const start = signedAt(edits, at + size, size);
    if (start >= 0) parts.push({ length: numberAt(edits, at, size), start }); // others are silence
  }
  return parts;
}

/** Units of a second. */
const timescale = (header: DataView): number => Math.max(1, numberAt(header, isWide(header) ? 20 : 12));

function* packetsOf(bytes: Uint8Array, movie: DataView, track: DataView): Iterable<Uint8Array> {
  yield* tablePackets(bytes, findBox(track, "mdia", "minf", "stbl")!); // it was found before
  const header = findBox(track, "tkhd");
  if (header) yield* fragmentPackets(bytes, movie, numberAt(header, isWide(header) ? 20 : 12));
}

/** Chunks lie anywhere in the file, and the packets of a chunk one after another. */
function* tablePackets(bytes: Uint8Array, table: DataView): Iterable<Uint8Array> {
  const [sizes, runs, narrow] = [findBox(table, "stsz"), findBox(table, "stsc"), findBox(table, "stco")];
  const chunks = narrow ?? findBox(table, "co64");
  if (!sizes || !runs || !chunks) return;
  const [same, packetCount, runCount] = [numberAt(sizes, 4), numberAt(sizes, 8), numberAt(runs, 4)];
  let [packet, run, length] = [0, 0, 0];
  for (let chunk = 0; chunk < numberAt(chunks, 4) && packet < packetCount; chunk++) {
    if (run < runCount && numberAt(runs, 8 + 12 * run) === chunk + 1) length = numberAt(runs, 12 + 12 * run++);
    let at = narrow ? numberAt(narrow, 8 + 4 * chunk) : numberAt(chunks, 8 + 8 * chunk, 8);
    for (let i = 0; i < length && packet < packetCount && at < bytes.length; i++, packet++) {
      const size = same || numberAt(sizes, 12 + 4 * packet);
      if (at + size <= bytes.length) yield bytes.subarray(at, at + size);
      at += size;
    }
  }
}

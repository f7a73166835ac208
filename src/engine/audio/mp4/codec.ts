/** The codec of a sound track and its configuration, from the box `stsd`. */
import { nameAt, numberAt, part } from "./boxes.ts";

export interface SoundCodec {
  readonly codec: "AAC" | "MP3" | "Opus";
  /** AudioSpecificConfig of AAC, OpusHead of Opus. */
  readonly config: Uint8Array;
}

const OTHER_CODECS: Readonly<Record<string, string>> = {
  alac: "Apple Lossless",
  "ac-3": "Dolby Digital",
  "ec-3": "Dolby Digital Plus",
  enca: "an encrypted track",
  fLaC: "FLAC in MP4",
  samr: "AMR",
  sawb: "AMR wideband",
};

/** Throws for another codec, and if it is damaged. */
export function readDescription(stsd: DataView): SoundCodec {
  const name = nameAt(stsd, 12); // after version, count and size
  const entry = part(stsd, 8, Math.min(stsd.byteLength, 8 + numberAt(stsd, 8)));
  if (name === "mp4a") return readEsds(contentOf(entry, "esds"));
  if (name === "Opus") return { codec: "Opus", config: opusHead(contentOf(entry, "dOps")) };
  if (name === ".mp3" || name === "ms\0U") return { codec: "MP3", config: new Uint8Array(0) };
  const shown = OTHER_CODECS[name] ?? `'${name.replace(/[^ -~]/g, "?")}'`;
  throw new Error(`expected AAC, MP3 or Opus, got ${shown}, which \`ffmpeg -i in.m4a out.mp3\` converts`);
}

/** QuickTime has further fields and boxes around this one, by version; so it is found by its name. */
function contentOf(entry: DataView, name: string): DataView {
  for (let at = 36; at + 8 <= entry.byteLength; at++)
    if (nameAt(entry, at + 4) === name) return part(entry, at + 8, entry.byteLength);
  throw new Error(`expected the box '${name}', got none`);
}

/** Tags of descriptors, and the bytes before those within. */
const DESCRIPTOR = { stream: 3, decoder: 4, config: 5 } as const;
const DECODER_BYTES = 13;
const MP3_TYPES: ReadonlySet<number> = new Set([0x69, 0x6b]);
const AAC_TYPES: ReadonlySet<number> = new Set([0x40, 0x66, 0x67, 0x68]);

function readEsds(esds: DataView): SoundCodec {
  const stream = readDescriptor(esds, 4, DESCRIPTOR.stream);
  const flags = numberAt(stream, 2, 1);
  const address = flags & 0x40 ? 1 + numberAt(stream, flags & 0x80 ? 5 : 3, 1) : 0;
  const decoder = readDescriptor(
    stream,
    3 + (flags & 0x80 ? 2 : 0) + address + (flags & 0x20 ? 2 : 0),
    DESCRIPTOR.decoder,
  );
  const type = numberAt(decoder, 0, 1);
  if (MP3_TYPES.has(type)) return { codec: "MP3", config: new Uint8Array(0) };
  if (!AAC_TYPES.has(type)) throw new Error(`expected AAC, MP3 or Opus, got the type ${type}`);
  const config = readDescriptor(decoder, DECODER_BYTES, DESCRIPTOR.config);
  return { codec: "AAC", config: new Uint8Array(config.buffer, config.byteOffset, config.byteLength) };
}

/** The content of the descriptor that begins here. Its length has 7 bits in each byte. */
function readDescriptor(view: DataView, at: number, tag: number): DataView {
  if (numberAt(view, at, 1) !== tag) throw new Error(`expected the descriptor ${tag}, got ${numberAt(view, at, 1)}`);
  let [length, start] = [0, at + 1];
  for (let more = true; more && start < at + 5; start++) {
    const byte = numberAt(view, start, 1);
    length = (length << 7) | (byte & 0x7f);
    more = byte >= 0x80;
  }
  return part(view, start, Math.min(view.byteLength, start + length));
}

/** The same fields in OpusHead have the other order of bytes. The edit list already leaves out the samples to skip. */
function opusHead(box: DataView): Uint8Array {
  const bytes = new Uint8Array(box.buffer, box.byteOffset, box.byteLength);
  const [channels, family] = [numberAt(box, 1, 1), numberAt(box, 10, 1)];
  const head = new Uint8Array(family === 0 ? 19 : 21 + channels);
  const view = new DataView(head.buffer);
  head.set(new TextEncoder().encode("OpusHead\x01"));
  head[9] = channels;
  view.setUint32(12, numberAt(box, 4), true);
  view.setUint16(16, numberAt(box, 8, 2), true);
  head.set(bytes.subarray(10, 10 + head.length - 18), 18);
  return head;
}

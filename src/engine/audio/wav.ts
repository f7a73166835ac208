/** WAV files: PCM of 8 to 32 bits, floats, A-law and µ-law. (RFC 2361; ITU-T G.711) */
import type { Sound } from "./sound.ts";
import { CHANNELS_MAX } from "./sound.ts";

/** Samples per channel that are read at once. */
const PIECE = 65_536;
const EXTENSIBLE = 0xfffe;

interface Layout {
  readonly channels: number;
  readonly rate: number;
  /** Bytes of a sample of one channel. */
  readonly bytes: number;
  readonly read: (view: DataView, at: number) => number;
}

/** Throws if it is damaged or of another encoding. */
export function readWav(bytes: Uint8Array, sound: Sound): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let layout: Layout | undefined;
  for (let at = 12; at + 8 <= bytes.length;) {
    const [name, size] = [view.getUint32(at), view.getUint32(at + 4, true)];
    const start = at + 8;
    if (name === 0x666d7420) layout = layoutOf(view, start, Math.min(size, bytes.length - start)); // "fmt "
    if (name === 0x64617461) {
      // "data"; a program that did not know the size wrote 0 or a very large one
      const end = size === 0 ? bytes.length : Math.min(bytes.length, start + size);
      if (!layout) throw new Error("expected 'fmt ' before 'data'");
      return readSamples(view, layout, { start, end, sound });
    }
    at = start + size + (size % 2);
  }
}

function layoutOf(view: DataView, at: number, size: number): Layout {
  if (size < 16) throw new Error("'fmt ' is cut off");
  const [channels, rate] = [view.getUint16(at + 2, true), view.getUint32(at + 4, true)];
  const [block, bits] = [view.getUint16(at + 12, true), view.getUint16(at + 14, true)];
  const named = view.getUint16(at, true);
  const encoding = named === EXTENSIBLE && size >= 26 ? view.getUint16(at + 24, true) : named;
  if (channels < 1 || channels > CHANNELS_MAX)
    throw new Error(`expected 1 to ${CHANNELS_MAX} channels, got ${channels}`);
  const bytes = block / channels;
  const read = ENCODINGS[encoding]?.[bytes];
  if (read && bits <= 8 * bytes) return { channels, rate, bytes, read };
  const got = `encoding ${encoding} with ${bits} bits in ${block} bytes for ${channels} channels`;
  throw new Error(`expected PCM of 8 to 32 bits, floats, A-law or µ-law, got ${got}`);
}

function readSamples(
  view: DataView,
  { channels, rate, bytes, read }: Layout,
  { start, end, sound }: { start: number; end: number; sound: Sound },
): void {
  const block = channels * bytes;
  const total = Math.floor((end - start) / block);
  for (let first = 0; first < total; first += PIECE) {
    const count = Math.min(PIECE, total - first);
    const parts = Array.from({ length: channels }, () => new Float32Array(count));
    for (const [channel, part] of parts.entries()) {
      let at = start + first * block + channel * bytes;
      for (let i = 0; i < count; i++, at += block) part[i] = read(view, at);
    }
    sound.add(parts, rate);
  }
}

/** By the encoding's number and the bytes of a sample. Samples with fewer bits have them in the upper bits. */
const ENCODINGS: Readonly<Record<number, Readonly<Record<number, Layout["read"]>>>> = {
  1: {
    1: (view, at) => (view.getUint8(at) - 128) / 128,
    2: (view, at) => view.getInt16(at, true) / 32_768,
    3: (view, at) => ((view.getInt8(at + 2) << 16) | view.getUint16(at, true)) / 8_388_608,
    4: (view, at) => view.getInt32(at, true) / 2_147_483_648,
  },
  3: {
    4: (view, at) => view.getFloat32(at, true),
    8: (view, at) => view.getFloat64(at, true),
  },
  6: { 1: (view, at) => aLaw(view.getUint8(at)) / 32_768 },
  7: { 1: (view, at) => muLaw(view.getUint8(at)) / 32_768 },
};

/** The value of 16 bits. Every second bit is inverted; the sign is the upper one. */
function aLaw(code: number): number {
  const bits = code ^ 0x55;
  const [exponent, mantissa] = [(bits >> 4) & 7, bits & 15];
  const value = exponent === 0 ? (mantissa << 4) + 8 : ((mantissa << 4) + 264) << (exponent - 1);
  return bits & 0x80 ? value : -value;
}

/** The value of 16 bits. All bits are inverted; the sign is the upper one. */
function muLaw(code: number): number {
  const bits = ~code & 0xff;
  const value = ((((bits & 15) << 3) + 132) << ((bits >> 4) & 7)) - 132;
  return bits & 0x80 ? -value : value;
}

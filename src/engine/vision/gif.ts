/**
 * Decodes the first frame of a GIF (GIF89a). Undrawn pixels follow stb_image, the reference's decoder: black, or the
 * background with red and blue swapped unless it is the first entry.
 */
import { broken, sizeText, type RgbImage, type Size } from "./image.ts";

/** Reads existing bytes; throws at the end of the data. */
class Reader {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  take(count: number): Uint8Array {
    const end = this.#at + count;
    if (end > this.#bytes.length) throw broken("cut off");
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  byte(): number {
    return this.take(1)[0]!;
  }

  short(): number {
    return this.byte() | (this.byte() << 8);
  }

  /** The colour table that follows, if flags say so. */
  colours(flags: number): Uint8Array | undefined {
    return flags & 0x80 ? this.take(3 * 2 ** ((flags & 7) + 1)) : undefined;
  }

  /** The next block of a sequence; undefined after the last. */
  block(): Uint8Array | undefined {
    const length = this.byte();
    return length === 0 ? undefined : this.take(length);
  }
}

interface Frame extends Size {
  readonly left: number;
  readonly top: number;
  readonly isInterlaced: boolean;
  /** (256, 3): black for missing entries and for the transparent one. */
  readonly colours: Uint8Array;
}

const [EXTENSION, IMAGE, CONTROL] = [0x21, 0x2c, 0xf9];

/** Throws `bad_request` naming the problem. */
export function decodeGif(bytes: Uint8Array, { width, height }: Size): RgbImage {
  const reader = new Reader(bytes, 10); // after the size
  const [flags, background] = [reader.byte(), reader.byte()];
  reader.byte(); // the aspect ratio of pixels
  const colours = reader.colours(flags);
  const frame = readFrame(reader, colours, { width, height });
  const indexes = new Uint8Array(frame.width * frame.height);
  const count = expand(reader, indexes);
  const data = new Uint8Array(width * height * 3);
  if (background > 0 && colours && count < width * height) {
    const entry = [2, 1, 0].map((channel) => colours[3 * background + channel] ?? 0);
    for (let i = 0; i < data.length; i++) data[i] = entry[i % 3]!;
  }
  draw({ width, height, data }, frame, indexes.subarray(0, count));
  return { width, height, data };
}

/** The part of the first frame before its codes. */
function readFrame(reader: Reader, common: Uint8Array | undefined, screen: Size): Frame {
  let transparent: number | undefined;
  for (;;) {
    const kind = reader.byte();
    if (kind === IMAGE) break;
    if (kind !== EXTENSION) throw broken("no picture in it");
    const isControl = reader.byte() === CONTROL;
    let block = reader.block();
    if (isControl && block?.length === 4) transparent = block[0]! & 1 ? block[3]! : undefined;
    while (block) block = reader.block();
  }
  const [left, top, width, height] = [reader.short(), reader.short(), reader.short(), reader.short()];
  if (left + width > screen.width || top + height > screen.height)
    throw broken(`a first frame of ${sizeText({ width, height })} at ${left}, ${top}`);
  const flags = reader.byte();
  const own = reader.colours(flags) ?? common;
  if (!own) throw broken("no colours");
  const colours = new Uint8Array(256 * 3);
  colours.set(own);
  if (transparent !== undefined) colours.fill(0, 3 * transparent, 3 * transparent + 3);
  return { left, top, width, height, isInterlaced: (flags & 0x40) !== 0, colours };
}

const CODE_BITS_MAX = 12;

/**
 * Expands codes to colour indexes, until the frame is full or the codes end; returns their number. A code stands for
 * one index or for a run of indexes: an earlier code's run and the index after it. (GIF89a, appendix F)
 */
function expand(reader: Reader, out: Uint8Array): number {
  const bits = reader.byte();
  if (bits < 1 || bits >= CODE_BITS_MAX) throw broken(`indexes of ${bits} bits`);
  const clear = 1 << bits;
  const [starts, lengths] = [new Int32Array(1 << CODE_BITS_MAX), new Int32Array(1 << CODE_BITS_MAX)];
  let [size, next, last] = [bits + 1, clear + 2, -1];
  let [block, used, held, count]: [Uint8Array, number, number, number] = [new Uint8Array(0), 0, 0, 0];
  let at = 0;
  while (at < out.length) {
    while (count < size) {
      if (used === block.length) {
        const more = reader.block();
        if (!more) return at;
        block = more;
        used = 0;
      }
      held |= block[used++]! << count;
      count += 8;
    }
    const code = held & ((1 << size) - 1);
    held >>>= size;
    count -= size;
    if (code === clear) {
      size = bits + 1;
      next = clear + 2;
      last = -1;
      continue;
    }
    if (code === clear + 1) return at;
    if (last >= 0 && next < starts.length) {
      starts[next] = last;
      lengths[next] = at - last + 1;
      next++;
    }
    if (code >= next) throw broken("an undefined code");
    last = at;
    if (code < clear) out[at++] = code;
    else {
      const end = Math.min(out.length, at + lengths[code]!);
      for (let from = starts[code]!; at < end;) out[at++] = out[from++]!;
    }
    if (next === 1 << size && size < CODE_BITS_MAX) size++;
  }
  return at;
}

/** First line and step of each pass. */
const INTERLACED = [
  [0, 8],
  [4, 8],
  [2, 4],
  [1, 2],
] as const;

function draw({ width, data }: RgbImage, frame: Frame, indexes: Uint8Array): void {
  const { colours } = frame;
  let from = 0;
  for (const [first, step] of frame.isInterlaced ? INTERLACED : [[0, 1] as const]) {
    for (let y = first; y < frame.height; y += step) {
      let at = 3 * ((frame.top + y) * width + frame.left);
      const end = Math.min(indexes.length, from + frame.width);
      for (; from < end; from++, at += 3) {
        const entry = 3 * indexes[from]!;
        data[at] = colours[entry]!;
        data[at + 1] = colours[entry + 1]!;
        data[at + 2] = colours[entry + 2]!;
      }
    }
  }
}

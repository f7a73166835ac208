/** One channel of a packet: from bits to a spectrum. (ISO/IEC 14496-3, 4.4.2.7 and 4.6.2 to 4.6.3) */
import type { Bands } from "./bands.ts";
import type { Bits } from "./bits.ts";
import { HuffmanCode } from "./huffman.ts";
import { eachBand, FRAME, readLayout, SEQUENCE, type Layout } from "./layout.ts";
import { readShaping, type Shaping } from "./shaping.ts";
import { FACTOR_TABLE, SPECTRUM_TABLES } from "./tables.ts";

/** Codebooks with a meaning: the last with coefficients, and bands that have none of their own. */
export const BOOK = { zero: 0, escape: 11, noise: 13, oppositeOfLeft: 14, likeLeft: 15 } as const;

export interface Channel {
  readonly layout: Layout;
  /** Codebook of each band of each group, or another value of `BOOK`. */
  readonly books: Uint8Array;
  /** Factor of each band of each group: of its coefficients, its noise, or the other channel's coefficients. */
  readonly factors: Float64Array;
  /** The spectra of all windows, one after another. */
  readonly spectrum: Float64Array;
  readonly shaping: Shaping;
}

/** @param shared the layout of both channels of a pair; undefined: the channel has its own. Throws if it is damaged. */
export function readChannel(bits: Bits, bands: Bands, { shared, noise }: ChannelParts): Channel {
  const gain = bits.read(8);
  const layout = shared ?? readLayout(bits, bands);
  const books = readBooks(bits, layout);
  const factors = readFactors(bits, books, gain);
  const isShort = layout.sequence === SEQUENCE.short;
  const pulses = bits.flag() ? readPulses(bits, layout, isShort) : [];
  const shaping = bits.flag() ? readShaping(bits, layout, isShort ? bands.shapedShort : bands.shapedLong) : [];
  if (bits.flag()) throw new Error("expected no gain control, got some");
  const quantized = readQuantized(bits, layout, books);
  for (const { at, amount } of pulses) quantized[at]! += quantized[at]! > 0 ? amount : -amount;
  const channel = { layout, books, factors, spectrum: new Float64Array(FRAME), shaping };
  scale(channel, quantized, noise);
  return channel;
}

interface ChannelParts {
  readonly shared: Layout | undefined;
  /** Values of equal probability from -1 to 1. */
  readonly noise: () => number;
}

function readBooks(bits: Bits, { groups, bandCount, sequence }: Layout): Uint8Array {
  const books = new Uint8Array(groups.length * bandCount);
  const lengthBits = sequence === SEQUENCE.short ? 3 : 5;
  const more = 2 ** lengthBits - 1;
  for (let group = 0; group < groups.length; group++)
    for (let band = 0; band < bandCount;) {
      const book = bits.read(4);
      let end = band;
      let part;
      do end += part = bits.read(lengthBits);
      while (part === more);
      if (book === 12 || end === band || end > bandCount) throw new Error("a section of bands is damaged");
      books.fill(book, group * bandCount + band, group * bandCount + end);
      band = end;
    }
  return books;
}

const factorCode = new HuffmanCode(FACTOR_TABLE);
const SAME_FACTOR = 60;

/** Each factor is stored as the difference to the last one of its kind. */
function readFactors(bits: Bits, books: Uint8Array, gain: number): Float64Array {
  const factors = new Float64Array(books.length);
  let [level, noise, place] = [gain, gain - 90, 0];
  let isFirstNoise = true;
  for (const [i, book] of books.entries()) {
    if (book === BOOK.zero) continue;
    if (book === BOOK.noise) {
      noise += isFirstNoise ? bits.read(9) - 256 : factorCode.read(bits) - SAME_FACTOR;
      isFirstNoise = false;
      factors[i] = 2 ** (noise / 4);
      continue;
    }
    const difference = factorCode.read(bits) - SAME_FACTOR;
    if (book === BOOK.likeLeft || book === BOOK.oppositeOfLeft) {
      place += difference;
      factors[i] = 2 ** (-place / 4);
      continue;
    }
    level += difference;
    if (level < 0 || level > 255) throw new Error(`expected a factor from 0 to 255, got ${level}`);
    factors[i] = 2 ** ((level - 100) / 4);
  }
  return factors;
}

interface Pulse {
  /** Coefficient. */
  readonly at: number;
  readonly amount: number;
}

function readPulses(bits: Bits, { offsets }: Layout, isShort: boolean): Pulse[] {
  if (isShort) throw new Error("expected no pulses in short windows, got some");
  const count = bits.read(2) + 1;
  let at = offsets[bits.read(6)] ?? FRAME;
  return Array.from({ length: count }, () => {
    at += bits.read(5);
    if (at >= FRAME) throw new Error(`expected a pulse before coefficient ${FRAME}, got ${at}`);
    return { at, amount: bits.read(4) };
  });
}

/** Codebooks 1 to 11: two or four values each, with signs inside of the words or behind them. */
const CODEBOOKS = [
  { size: 4, max: 1, isSigned: true },
  { size: 4, max: 1, isSigned: true },
  { size: 4, max: 2, isSigned: false },
  { size: 4, max: 2, isSigned: false },
  { size: 2, max: 4, isSigned: true },
  { size: 2, max: 4, isSigned: true },
  { size: 2, max: 7, isSigned: false },
  { size: 2, max: 7, isSigned: false },
  { size: 2, max: 12, isSigned: false },
  { size: 2, max: 12, isSigned: false },
  { size: 2, max: 16, isSigned: false },
].map(({ size, max, isSigned }, i) => {
  const table = SPECTRUM_TABLES[i]!;
  return {
    size,
    isSigned,
    code: new HuffmanCode(table),
    values: tuplesOf(table.symbols.length, { size, max, isSigned }),
  };
});

/** The values of all symbols, one after another. The digits of a symbol are its values, the last value the lowest. */
function tuplesOf(count: number, { size, max, isSigned }: { size: number; max: number; isSigned: boolean }): Int8Array {
  const [base, lowest] = isSigned ? [2 * max + 1, -max] : [max + 1, 0];
  const digit = (symbol: number, i: number): number => Math.floor(symbol / base ** (size - 1 - i)) % base;
  return Int8Array.from({ length: count * size }, (_, at) => digit(Math.floor(at / size), at % size) + lowest);
}

function readQuantized(bits: Bits, layout: Layout, books: Uint8Array): Int32Array {
  const out = new Int32Array(FRAME);
  eachBand(layout, ({ index, window, windows, from, to }) => {
    const book = books[index]!;
    if (book === BOOK.zero || book > BOOK.escape) return;
    const read = tupleReader(bits, book);
    for (let i = window; i < window + windows; i++) {
      const start = i * layout.windowSize;
      for (let at = start + from; at < start + to;) at = read(out, at);
    }
  });
  return out;
}

/** A function that writes one tuple of values and returns its end. */
function tupleReader(bits: Bits, book: number): (out: Int32Array, at: number) => number {
  const { size, isSigned, code, values } = CODEBOOKS[book - 1]!;
  return (out, at) => {
    const first = code.read(bits) * size;
    for (let i = 0; i < size; i++) {
      const value = values[first + i]!;
      out[at + i] = !isSigned && value !== 0 && bits.flag() ? -value : value;
    }
    if (book === BOOK.escape)
      for (let i = at; i < at + size; i++)
        if (Math.abs(out[i]!) === ESCAPE) out[i] = Math.sign(out[i]!) * readEscape(bits);
    return at + size;
  };
}

/** A larger value follows. */
const ESCAPE = 16;

/** A value of 16 and more: as many set bits as it has bits beyond four, a zero, and the bits below its highest. */
function readEscape(bits: Bits): number {
  let extra = 0;
  while (bits.flag()) extra++;
  if (extra > 8) throw new Error("expected a coefficient below 8192, got a larger one");
  return ESCAPE * 2 ** extra + bits.read(extra + 4);
}

function scale({ layout, books, factors, spectrum }: Channel, quantized: Int32Array, noise: () => number): void {
  eachBand(layout, ({ index, window, windows, from, to }) => {
    const [book, factor] = [books[index]!, factors[index]!];
    for (let i = window; i < window + windows; i++) {
      const start = i * layout.windowSize;
      if (book === BOOK.noise) fillWithNoise(spectrum.subarray(start + from, start + to), factor, noise);
      else if (book <= BOOK.escape)
        for (let at = start + from; at < start + to; at++) {
          const value = quantized[at]!;
          if (value !== 0) spectrum[at] = Math.sign(value) * Math.abs(value) ** (4 / 3) * factor;
        }
    }
  });
}

/** Noise whose squares add up to the square of `factor`. */
function fillWithNoise(out: Float64Array, factor: number, noise: () => number): void {
  let power = 0;
  for (let i = 0; i < out.length; i++) power += (out[i] = noise()) ** 2;
  const gain = factor / Math.sqrt(power);
  for (let i = 0; i < out.length; i++) out[i]! *= gain;
}

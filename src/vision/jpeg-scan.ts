/**
 * The entropy-coded part of JPEG: Huffman codes to coefficients, sequential and progressive (ITU-T T.81, F and G).
 * What runs for each block or code allocates nothing: of forty megapixels it would be gigabytes.
 */
import { broken } from "./image.ts";
import { ZIGZAG, type Component, type Frame, type HuffmanTable, type Scan } from "./jpeg-frame.ts";

/** Reads bits of a scan; where the data ends, or a marker comes, it throws. */
class Bits {
  readonly #bytes: Uint8Array;
  at: number;
  #held = 0;
  #count = 0;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  /** Holds at least `count` bits of at most 16; behind the data come zeros, which only `take` refuses. */
  #fill(count: number): void {
    while (this.#count < count) {
      let byte = 0;
      if (this.at < this.#bytes.length) {
        byte = this.#bytes[this.at]!;
        if (byte === 0xff) {
          let next = this.at + 1;
          while (this.#bytes[next] === 0xff) next++;
          if (this.#bytes[next] === 0) this.at = next + 1;
          else this.#missing(8);
        } else this.at++;
      } else this.#missing(8);
      this.#held = ((this.#held << 8) | (this.#ended > 0 ? 0 : byte)) & 0xffffff;
      this.#count += 8;
    }
  }

  #ended = 0;
  #missing(bits: number): void {
    this.#ended += bits;
  }

  take(count: number): number {
    if (count === 0) return 0;
    this.#fill(count);
    this.#count -= count;
    if (this.#count < this.#ended) throw broken("cut off within the picture");
    return (this.#held >> this.#count) & ((1 << count) - 1);
  }

  symbol({ ends, offsets, symbols }: HuffmanTable): number {
    this.#fill(16);
    const code = (this.#held >> (this.#count - 16)) & 0xffff;
    let length = 1;
    while (code >= ends[length]!) length++;
    if (length > 16) throw broken("a code that stands for nothing");
    this.#count -= length;
    if (this.#count < this.#ended) throw broken("cut off within the picture");
    return symbols[offsets[length]! + (code >> (16 - length))]!;
  }

  /** A number of so many bits, of which the lower half of the values are negative. */
  signed(count: number): number {
    const value = this.take(count);
    return count === 0 || value >= 1 << (count - 1) ? value : value - (1 << count) + 1;
  }

  /** Goes behind the restart marker that should be here. */
  restart(): void {
    this.#held = 0;
    this.#count = 0;
    this.#ended = 0;
    const bytes = this.#bytes;
    while (bytes[this.at] === 0xff && bytes[this.at + 1] === 0xff) this.at++;
    const code = bytes[this.at + 1] ?? 0;
    if (bytes[this.at] !== 0xff || code < 0xd0 || code > 0xd7) throw broken("no restart where one should be");
    this.at += 2;
  }
}

/** What decoding of a scan goes on from. */
interface State {
  /** Of each part of the scan. */
  readonly predictions: Int32Array;
  /** Blocks that are at their end. */
  endOfBand: number;
}

type DecodeBlock = (coefficients: Int16Array, at: number, part: number) => void;

/** Decodes a scan into the coefficients of its components; returns where it ended. */
export function decodeScan(bytes: Uint8Array, { maxH, maxV, width, height, isProgressive }: Frame, scan: Scan): number {
  const bits = new Bits(bytes, scan.start);
  const state: State = { predictions: new Int32Array(scan.parts.length), endOfBand: 0 };
  const decode = blockDecoder(bits, scan, state, isProgressive);
  let left = scan.restart;
  const beginUnit = (): void => {
    if (scan.restart === 0 || left-- > 0) return;
    bits.restart();
    state.predictions.fill(0);
    state.endOfBand = 0;
    left = scan.restart - 1;
  };
  if (scan.parts.length === 1) {
    const { component } = scan.parts[0]!;
    for (let y = 0; y < component.usedHigh; y++) {
      for (let x = 0; x < component.usedWide; x++) {
        beginUnit();
        decode(component.coefficients, placeOf(component, x, y), 0);
      }
    }
    return bits.at;
  }
  const across = Math.ceil(width / (8 * maxH));
  const down = Math.ceil(height / (8 * maxV));
  for (let top = 0; top < down; top++) {
    for (let leftmost = 0; leftmost < across; leftmost++) {
      beginUnit();
      for (let part = 0; part < scan.parts.length; part++) {
        const { component } = scan.parts[part]!;
        const { h, v, coefficients } = component;
        for (let y = 0; y < v; y++)
          for (let x = 0; x < h; x++) decode(coefficients, placeOf(component, leftmost * h + x, top * v + y), part);
      }
    }
  }
  return bits.at;
}

const placeOf = ({ blocksWide }: Component, x: number, y: number): number => (y * blocksWide + x) * 64;

function blockDecoder(bits: Bits, scan: Scan, state: State, isProgressive: boolean): DecodeBlock {
  const need = (table: HuffmanTable | undefined): HuffmanTable => {
    if (!table) throw broken("a Huffman table is missing");
    return table;
  };
  const dcs = (): HuffmanTable[] => scan.parts.map(({ dc }) => need(scan.dcTables[dc]));
  const acs = (): HuffmanTable[] => scan.parts.map(({ ac }) => need(scan.acTables[ac]));
  const { predictions } = state;
  const { low, high, from } = scan;
  if (!isProgressive) return allBits(bits, predictions, { dcs: dcs(), acs: acs() });
  if (from === 0 && high === 0) {
    const tables = dcs();
    return (coefficients, at, part) => {
      predictions[part]! += bits.signed(sizeOf(bits.symbol(tables[part]!)));
      coefficients[at] = predictions[part]! << low;
    };
  }
  if (from === 0) return (coefficients, at) => void (bits.take(1) && (coefficients[at]! += 1 << low));
  const ac = acs()[0]!;
  return high === 0 ? firstBits(bits, scan, state, ac) : moreBits(bits, scan, state, ac);
}

const sizeOf = (symbol: number): number => {
  if (symbol > 15) throw broken("a difference of too many bits");
  return symbol;
};

/** All coefficients at once. */
function allBits(
  bits: Bits,
  predictions: Int32Array,
  { dcs, acs }: Record<"dcs" | "acs", readonly HuffmanTable[]>,
): DecodeBlock {
  return (coefficients, at, part) => {
    const ac = acs[part]!;
    coefficients[at] = predictions[part]! += bits.signed(sizeOf(bits.symbol(dcs[part]!)));
    for (let k = 1; k < 64; k++) {
      const symbol = bits.symbol(ac);
      const run = symbol >> 4;
      const size = symbol & 15;
      if (size === 0 && run < 15) break;
      k += run;
      if (size === 0) continue;
      if (k > 63) throw broken("more coefficients than a block has");
      coefficients[at + ZIGZAG[k]!] = bits.signed(size);
    }
  };
}

/** Coefficients of a band, their upper bits. */
function firstBits(bits: Bits, { from, to, low }: Scan, state: State, ac: HuffmanTable): DecodeBlock {
  return (coefficients, at) => {
    if (state.endOfBand > 0) return void state.endOfBand--;
    for (let k = from; k <= to; k++) {
      const symbol = bits.symbol(ac);
      const run = symbol >> 4;
      const size = symbol & 15;
      if (size === 0 && run < 15) {
        state.endOfBand = (1 << run) - 1 + bits.take(run);
        return;
      }
      k += run;
      if (size === 0) continue;
      if (k > 63) throw broken("more coefficients than a block has");
      coefficients[at + ZIGZAG[k]!] = bits.signed(size) * (1 << low);
    }
  };
}

/** One more bit of the coefficients of a band, and those that begin with it. */
function moreBits(bits: Bits, { from, to, low }: Scan, state: State, ac: HuffmanTable): DecodeBlock {
  const bit = 1 << low;
  /** Corrects a coefficient that is there. */
  const refine = (coefficients: Int16Array, place: number): void => {
    if (bits.take(1) === 0 || (coefficients[place]! & bit) !== 0) return;
    coefficients[place]! += coefficients[place]! > 0 ? bit : -bit;
  };
  return (coefficients, at) => {
    let k = from;
    if (state.endOfBand === 0) {
      while (k <= to) {
        const symbol = bits.symbol(ac);
        let run = symbol >> 4;
        const size = symbol & 15;
        if (size === 0 && run < 15) {
          state.endOfBand = (1 << run) + bits.take(run);
          break;
        }
        if (size > 1) throw broken("a coefficient that begins with more than a bit");
        const value = size === 0 ? 0 : bits.take(1) === 1 ? bit : -bit;
        for (; k <= to; k++) {
          const place = at + ZIGZAG[k]!;
          if (coefficients[place] !== 0) refine(coefficients, place);
          else if (run-- === 0) {
            coefficients[place] = value;
            k++;
            break;
          }
        }
      }
    }
    if (state.endOfBand === 0) return;
    for (; k <= to; k++) if (coefficients[at + ZIGZAG[k]!] !== 0) refine(coefficients, at + ZIGZAG[k]!);
    state.endOfBand--;
  };
}

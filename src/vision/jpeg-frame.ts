/** The parts of a JPEG file: tables, components and scans (ITU-T T.81, annex B). Nothing of it is decoded here. */
import { broken, sizeText, type Size } from "./image.ts";

/** Coefficients in the order in which they are stored. */
export const ZIGZAG = zigzag();

/** Diagonal by diagonal, the first to the right and up, the next back. */
function zigzag(): Uint8Array {
  const places = Array.from({ length: 64 }, (_, place) => ({ place, x: place % 8, y: Math.floor(place / 8) }));
  const rank = ({ x, y }: { x: number; y: number }): number => 8 * (x + y) + ((x + y) % 2 === 0 ? x : y);
  return Uint8Array.from(
    places.toSorted((a, b) => rank(a) - rank(b)),
    ({ place }) => place,
  );
}

/** Codes of up to 16 bits to symbols. */
export interface HuffmanTable {
  /** Of each length the first code behind its codes, filled up to 16 bits. */
  readonly ends: Int32Array; // (18)
  /** Of each length: index of its first symbol, less its first code. */
  readonly offsets: Int32Array; // (17)
  readonly symbols: Uint8Array;
}

export interface Component {
  readonly id: number;
  /** Blocks of it in each unit of the picture, across and down. */
  readonly h: number;
  readonly v: number;
  readonly table: number;
  /** Blocks across and down, whole units. */
  readonly blocksWide: number;
  readonly blocksHigh: number;
  /** Blocks that have something of the picture. */
  readonly usedWide: number;
  readonly usedHigh: number;
  /** (blocksHigh, blocksWide, 64), not yet scaled. Gone once its samples are made. */
  readonly coefficients: Int16Array<ArrayBuffer>;
}

export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly isProgressive: boolean;
  readonly components: readonly Component[];
  readonly maxH: number;
  readonly maxV: number;
}

/** A scan and what was in force when it began. */
export interface Scan {
  readonly parts: readonly { readonly component: Component; readonly dc: number; readonly ac: number }[];
  /** Coefficients, and bits of them: successive approximation. */
  readonly from: number;
  readonly to: number;
  readonly high: number;
  readonly low: number;
  readonly restart: number;
  readonly dcTables: readonly (HuffmanTable | undefined)[];
  readonly acTables: readonly (HuffmanTable | undefined)[];
  /** Where its codes begin. */
  readonly start: number;
}

export interface Jpeg {
  readonly frame: Frame;
  readonly quantization: readonly (Uint16Array | undefined)[];
  /** Of an Adobe segment; undefined without one. */
  readonly transform: number | undefined;
  readonly isJfif: boolean;
}

/** Scans of a progressive picture are ten or so; each one may touch every coefficient. */
const SCANS_MAX = 256;

/**
 * Reads the segments in order.
 * @param size what its frame is to have: no other is allocated
 * @param onScan decodes a scan and returns where it ended
 */
export function readJpeg(bytes: Uint8Array, size: Size, onScan: (frame: Frame, scan: Scan) => number): Jpeg {
  const quantization: (Uint16Array | undefined)[] = [];
  const dcTables: (HuffmanTable | undefined)[] = [];
  const acTables: (HuffmanTable | undefined)[] = [];
  let frame: Frame | undefined;
  let [transform, isJfif, restart, scans, at]: [number | undefined, boolean, number, number, number] = [
    undefined,
    false,
    0,
    0,
    2,
  ];
  for (;;) {
    const marker = nextMarker(bytes, at);
    at = marker.end;
    if (marker.code === 0xd9) break;
    const segment = segmentAt(bytes, at);
    at += segment.length + 2;
    if (marker.code === 0xdb) readQuantization(segment, quantization);
    else if (marker.code === 0xc4) readHuffman(segment, { dcTables, acTables });
    else if (marker.code === 0xdd) restart = (segment[0]! << 8) | segment[1]!;
    else if (marker.code === 0xe0) isJfif ||= String.fromCharCode(...segment.subarray(0, 4)) === "JFIF";
    else if (marker.code === 0xee && String.fromCharCode(...segment.subarray(0, 5)) === "Adobe")
      transform = segment[11];
    else if ([0xc0, 0xc1, 0xc2].includes(marker.code)) {
      if (frame) throw broken("two frames");
      frame = readFrame(segment, { isProgressive: marker.code === 0xc2, size });
    } else if (marker.code === 0xda) {
      if (!frame) throw broken("a scan before its frame");
      if (++scans > SCANS_MAX) throw broken(`more than ${SCANS_MAX} scans`);
      at = onScan(frame, { ...readScan(segment, frame), restart, dcTables, acTables, start: at });
      if (!frame.isProgressive && at >= bytes.length - 1) break; // all of it is there, but for its end
    } else if (marker.code >= 0xc3 && marker.code <= 0xcf && marker.code !== 0xc8) {
      throw broken("lossless, hierarchical or arithmetic coding, which nobody reads");
    }
  }
  if (!frame || scans === 0) throw broken("no picture in it");
  return { frame, quantization, transform, isJfif };
}

function nextMarker(bytes: Uint8Array, from: number): { code: number; end: number } {
  let at = from;
  while (at < bytes.length && bytes[at] !== 0xff) at++; // what is between segments is skipped, as the reference does
  while (at < bytes.length && bytes[at] === 0xff) at++;
  if (at >= bytes.length) throw broken("cut off");
  const code = bytes[at]!;
  if (code === 0 || (code >= 0xd0 && code <= 0xd7)) return nextMarker(bytes, at + 1);
  return { code, end: at + 1 };
}

function segmentAt(bytes: Uint8Array, at: number): Uint8Array {
  const length = at + 2 <= bytes.length ? (bytes[at]! << 8) | bytes[at + 1]! : 0;
  if (length < 2 || at + length > bytes.length) throw broken("a segment is cut off");
  return bytes.subarray(at + 2, at + length);
}

function readQuantization(segment: Uint8Array, tables: (Uint16Array | undefined)[]): void {
  let at = 0;
  while (at < segment.length) {
    const [wide, index] = [segment[at]! >> 4, segment[at]! & 15];
    const size = wide ? 128 : 64;
    if (wide > 1 || index > 3 || at + 1 + size > segment.length) throw broken("a quantization table is cut off");
    const table = new Uint16Array(64);
    for (let i = 0; i < 64; i++) {
      table[ZIGZAG[i]!] = wide ? (segment[at + 1 + 2 * i]! << 8) | segment[at + 2 + 2 * i]! : segment[at + 1 + i]!;
    }
    tables[index] = table;
    at += 1 + size;
  }
}

type Tables = Record<"dcTables" | "acTables", (HuffmanTable | undefined)[]>;

function readHuffman(segment: Uint8Array, { dcTables, acTables }: Tables): void {
  let at = 0;
  while (at < segment.length) {
    const [kind, index] = [segment[at]! >> 4, segment[at]! & 15];
    const counts = segment.subarray(at + 1, at + 17);
    const total = counts.reduce((sum, count) => sum + count, 0);
    if (kind > 1 || index > 3 || total > 256 || at + 17 + total > segment.length)
      throw broken("a Huffman table is cut off");
    const table = huffmanTable(counts, segment.slice(at + 17, at + 17 + total));
    (kind === 0 ? dcTables : acTables)[index] = table;
    at += 17 + total;
  }
}

function huffmanTable(counts: Uint8Array, symbols: Uint8Array): HuffmanTable {
  const ends = new Int32Array(18);
  const offsets = new Int32Array(17);
  let [code, index] = [0, 0];
  for (let length = 1; length <= 16; length++) {
    offsets[length] = index - code;
    code += counts[length - 1]!;
    index += counts[length - 1]!;
    if (code > 1 << length) throw broken("a Huffman table has more codes than there are");
    ends[length] = code << (16 - length);
    code <<= 1;
  }
  ends[17] = 0x10000; // beyond every code
  return { ends, offsets, symbols };
}

function readFrame(segment: Uint8Array, { isProgressive, size }: { isProgressive: boolean; size: Size }): Frame {
  const view = new DataView(segment.buffer, segment.byteOffset, segment.byteLength);
  const count = segment[5] ?? 0;
  if (segment.length < 6 + 3 * count || ![1, 3, 4].includes(count)) throw broken(`${count} components`);
  if (segment[0] !== 8) throw broken(`${segment[0]} bits to a sample, not 8`);
  const [height, width] = [view.getUint16(1), view.getUint16(3)];
  if (width !== size.width || height !== size.height) throw broken(`a frame of ${sizeText({ width, height })}`);
  const read = Array.from({ length: count }, (_, i) => {
    const [id, sampling, table] = [segment[6 + 3 * i]!, segment[7 + 3 * i]!, segment[8 + 3 * i]!];
    const [h, v] = [sampling >> 4, sampling & 15];
    if (h < 1 || h > 4 || v < 1 || v > 4 || table > 3) throw broken(`a component of ${h}×${v} samples`);
    return { id, h, v, table };
  });
  const [maxH, maxV] = [Math.max(...read.map(({ h }) => h)), Math.max(...read.map(({ v }) => v))];
  if (read.some(({ h, v }) => maxH % h !== 0 || maxV % v !== 0)) throw broken("samples that fit no whole pixels");
  const [across, down] = [Math.ceil(width / (8 * maxH)), Math.ceil(height / (8 * maxV))];
  const components = read.map(({ h, v, ...rest }): Component => {
    const [blocksWide, blocksHigh] = [across * h, down * v];
    const [usedWide, usedHigh] = [
      Math.ceil(Math.ceil((width * h) / maxH) / 8),
      Math.ceil(Math.ceil((height * v) / maxV) / 8),
    ];
    const coefficients = new Int16Array(blocksWide * blocksHigh * 64);
    return { ...rest, h, v, blocksWide, blocksHigh, usedWide, usedHigh, coefficients };
  });
  return { width, height, isProgressive, components, maxH, maxV };
}

type ScanHeader = Pick<Scan, "parts" | "from" | "to" | "high" | "low">;

function readScan(segment: Uint8Array, { components, isProgressive }: Frame): ScanHeader {
  const count = segment[0] ?? 0;
  if (count < 1 || count > 4 || segment.length < 4 + 2 * count) throw broken(`a scan of ${count} components`);
  const parts = Array.from({ length: count }, (_, i) => {
    const component = components.find(({ id }) => id === segment[1 + 2 * i]);
    const tables = segment[2 + 2 * i]!;
    if (!component || tables >> 4 > 3 || (tables & 15) > 3) throw broken("a scan of a component that there is not");
    return { component, dc: tables >> 4, ac: tables & 15 };
  });
  if (!isProgressive) return { parts, from: 0, to: 63, high: 0, low: 0 };
  const [from, to, bits] = [segment[1 + 2 * count]!, segment[2 + 2 * count]!, segment[3 + 2 * count]!];
  const isGood = from <= to && to <= 63 && bits >> 4 <= 13 && (bits & 15) <= 13 && (from > 0 ? count === 1 : to === 0);
  if (!isGood) throw broken(`a scan of coefficients ${from} … ${to}`);
  return { parts, from, to, high: bits >> 4, low: bits & 15 };
}

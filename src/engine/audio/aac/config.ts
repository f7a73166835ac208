/** Headers of AAC: the configuration of a track, and ADTS, which precedes each frame of a stream. (ISO/IEC 14496-3) */
import { isAdts } from "../format.ts";
import { RATES } from "./bands.ts";
import { Bits } from "./bits.ts";

export interface AacConfig {
  /** Index of the sampling rate, which chooses the bands. */
  readonly rateIndex: number;
  /** Samples per second. */
  readonly rate: number;
}

const LOW_COMPLEXITY = 2;
/** Extensions that double the rate or make two channels of one. The sound below them is complete for speech. */
const EXTENSIONS: ReadonlySet<number> = new Set([5, 29]);
const OTHER_TYPES: Readonly<Record<number, string>> = {
  1: "Main",
  3: "SSR",
  4: "LTP",
  17: "ER LC",
  23: "LD",
  36: "ALS",
  39: "ELD",
  42: "xHE-AAC",
};

/** Throws for a kind of AAC that we cannot decode, and if it is damaged. */
export function readConfig(bytes: Uint8Array): AacConfig {
  const bits = new Bits(bytes);
  let type = readType(bits);
  const core = readRate(bits);
  bits.skip(4); // channels: the elements of each packet say them
  if (EXTENSIONS.has(type)) {
    readRate(bits);
    type = readType(bits);
  }
  checkType(type);
  if (bits.flag()) throw new Error("expected AAC with frames of 1024 samples, got 960");
  return core;
}

function checkType(type: number): void {
  if (type !== LOW_COMPLEXITY) throw new Error(`expected AAC LC or HE-AAC, got ${OTHER_TYPES[type] ?? `type ${type}`}`);
}

function readType(bits: Bits): number {
  const type = bits.read(5);
  return type === 31 ? 32 + bits.read(6) : type;
}

function readRate(bits: Bits): AacConfig {
  const index = bits.read(4);
  if (index < RATES.length) return { rateIndex: index, rate: RATES[index]! };
  if (index !== 15) throw new Error(`expected a sampling rate, got the index ${index}`);
  const rate = bits.read(24);
  return { rateIndex: nearestRate(rate), rate };
}

/** The bands of a rate that is not in the table follow from these limits. (ISO/IEC 14496-3, table 4.82) */
const LIMITS = [92_017, 75_132, 55_426, 46_009, 37_566, 27_713, 23_004, 18_783, 13_856, 11_502, 9391];

function nearestRate(rate: number): number {
  const index = LIMITS.findIndex((limit) => rate >= limit);
  return index < 0 ? LIMITS.length : index;
}

interface AdtsFrame {
  readonly config: AacConfig;
  readonly packet: Uint8Array;
  /** Blocks of 1,024 samples in the packet, from 1. */
  readonly blocks: number;
}

/** The frames of a stream. Skips damage between them, and a frame that is cut off. */
export function* adtsFrames(bytes: Uint8Array): Iterable<AdtsFrame> {
  for (let at = 0; at + 7 <= bytes.length;) {
    const frame = isAdts(bytes, at) ? readFrame(bytes, at) : undefined;
    if (frame) yield frame.read;
    at = frame ? frame.end : at + 1;
  }
}

function readFrame(bytes: Uint8Array, at: number): { read: AdtsFrame; end: number } | undefined {
  const bits = new Bits(bytes, 8 * at + 15);
  const headBytes = bits.flag() ? 7 : 9; // the latter with a checksum
  const type = bits.read(2) + 1;
  const rateIndex = bits.read(4);
  bits.skip(8); // private, channels, copyright
  const end = at + bits.read(13);
  bits.skip(11); // fullness
  const blocks = bits.read(2) + 1;
  const rate = RATES[rateIndex];
  if (at === 0) checkType(type);
  if (type !== LOW_COMPLEXITY || rate === undefined || end < at + headBytes || end > bytes.length) return undefined;
  return { read: { config: { rateIndex, rate }, packet: bytes.subarray(at + headBytes, end), blocks }, end };
}

/**
 * AAC of low complexity (LC), and what HE-AAC adds to it left out: its upper half of the frequencies, and the second
 * channel that it computes from the first. (ISO/IEC 14496-3)
 */
import { BANDS } from "./bands.ts";
import { Bits } from "./bits.ts";
import { readChannel, type Channel } from "./channel.ts";
import { readConfig, type AacConfig } from "./config.ts";
import { makeFilterBank, type FilterBank } from "./filter-bank.ts";
import { readLayout } from "./layout.ts";
import { CHANNELS_MAX } from "../sound.ts";
import { shape } from "./shaping.ts";
import { joinChannels, readMiddles } from "./stereo.ts";

export { adtsFrames } from "./config.ts";

const ELEMENT = { single: 0, pair: 1, coupling: 2, bass: 3, data: 4, program: 5, fill: 6, end: 7 } as const;

/** A tone of full scale has 2²⁵; filters and factors of a damaged packet may give any number. */
const COEFFICIENT_MAX = 2 ** 40;

export interface AacDecoder {
  readonly rate: number;
  /**
   * 1,024 samples of each channel, for each of the packet's blocks. A damaged block has none, and ends the packet.
   * @param count blocks in the packet
   */
  decode(packet: Uint8Array, count?: number): Iterable<Float32Array[]>;
}

/** Throws for a kind of AAC that we cannot decode. */
export const openAac = (config: Uint8Array): AacDecoder => makeAacDecoder(readConfig(config));

export function makeAacDecoder({ rateIndex, rate }: AacConfig): AacDecoder {
  const bands = BANDS[rateIndex]!;
  const banks = new Map<string, FilterBank>();
  const noise = makeNoise();

  const samplesOf = (channel: Channel, place: string): Float32Array => {
    let bank = banks.get(place);
    if (!bank) banks.set(place, (bank = makeFilterBank()));
    shape(channel.spectrum, channel.shaping);
    if (!channel.spectrum.every((value) => Math.abs(value) < COEFFICIENT_MAX))
      throw new Error(`expected coefficients below ${COEFFICIENT_MAX}, got a larger one`);
    return bank.add(channel.layout, channel.spectrum);
  };
  const readPair = (bits: Bits, place: string): Float32Array[] => {
    const shared = bits.flag() ? readLayout(bits, bands) : undefined;
    const middles = shared ? readMiddles(bits, shared) : [];
    const left = readChannel(bits, bands, { shared, noise });
    const right = readChannel(bits, bands, { shared, noise });
    if (shared) joinChannels(left, right, middles);
    return [samplesOf(left, place), samplesOf(right, `${place}, right`)];
  };
  const readBlock = (bits: Bits): Float32Array[] => {
    const channels: Float32Array[] = [];
    for (;;) {
      const element = bits.read(3);
      if (element === ELEMENT.end) break;
      if (element === ELEMENT.fill) skipFill(bits);
      else {
        const place = `${element} ${bits.read(4)}`;
        if (element === ELEMENT.data) skipData(bits);
        else if (element === ELEMENT.program) skipProgram(bits);
        else if (element === ELEMENT.coupling) throw new Error("expected no coupling channel, got one");
        else if (element === ELEMENT.pair) channels.push(...readPair(bits, place));
        else channels.push(samplesOf(readChannel(bits, bands, { shared: undefined, noise }), place));
        if (channels.length > CHANNELS_MAX) throw new Error(`expected at most ${CHANNELS_MAX} channels, got more`);
      }
    }
    bits.align();
    return channels;
  };
  return {
    rate,
    *decode(packet, count = 1) {
      const bits = new Bits(packet);
      for (let i = 0; i < count; i++) {
        const channels = unlessDamaged(() => readBlock(bits));
        if (!channels) return;
        if (channels.length > 0) yield channels;
      }
    },
  };
}

function unlessDamaged<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** A linear congruential generator that begins as FFmpeg's, so that their samples can be compared. */
function makeNoise(): () => number {
  let state = 0x1f2e3d4c;
  return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0) / 2 ** 31;
}

/** Padding, and extensions such as HE-AAC's. */
function skipFill(bits: Bits): void {
  const count = bits.read(4);
  bits.skip(8 * (count === 15 ? 14 + bits.read(8) : count));
}

function skipData(bits: Bits): void {
  const isAligned = bits.flag();
  const count = bits.read(8);
  const bytes = count === 255 ? 255 + bits.read(8) : count;
  if (isAligned) bits.align();
  bits.skip(8 * bytes);
}

/** A list of the elements in front, beside and behind. */
function skipProgram(bits: Bits): void {
  bits.skip(6); // type, sampling rate
  const counts = [bits.read(4), bits.read(4), bits.read(4), bits.read(2), bits.read(3), bits.read(4)];
  for (const width of [4, 4, 3]) if (bits.flag()) bits.skip(width); // mixed down
  const [front, side, back, bass, data, coupling] = counts as [number, number, number, number, number, number];
  bits.skip(5 * (front + side + back) + 4 * (bass + data) + 5 * coupling);
  bits.align();
  bits.skip(8 * bits.read(8)); // a comment
}

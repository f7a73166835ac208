/** Opus packets to samples, whatever container they come from. (RFC 6716; RFC 7845, OpusHead) */
import { importOpus } from "./libraries.ts";
import { CHANNELS_MAX, type Sound } from "./sound.ts";

const HEAD_BYTES = 19;
/** Limits of `opus-decoder`'s buffer. */
const PACKET_BYTES_MAX = 3840;

/**
 * Adds the samples of each given packet to a sound; a damaged packet adds none.
 * @param head the track's OpusHead
 *
 * Throws for a damaged header; the returned function for packets beyond the decoder's limit.
 */
export async function openOpus(head: Uint8Array, sound: Sound): Promise<(packet: Uint8Array) => void> {
  const { OpusDecoder } = await importOpus();
  const options = readHead(head);
  const decoder = new OpusDecoder(options);
  await decoder.ready;
  const bytesMax = PACKET_BYTES_MAX * options.channels;
  return (packet) => {
    if (packet.length > bytesMax)
      throw new Error(`expected packets of at most ${bytesMax} bytes, got ${packet.length}`);
    if (packet.length === 0) return; // the decoder would make up a sound
    const { channelData, sampleRate } = decoder.decodeFrame(packet);
    if (channelData[0]?.length) sound.add(channelData, sampleRate);
  };
}

interface Head {
  readonly channels: number;
  /** Samples at 48 kHz before the sound begins. */
  readonly preSkip: number;
  readonly streamCount: number;
  readonly coupledStreamCount: number;
  readonly channelMappingTable: number[];
}

/** Checks all that the decoder relies on. */
function readHead(head: Uint8Array): Head {
  if (head.length < HEAD_BYTES || String.fromCharCode(...head.subarray(0, 8)) !== "OpusHead")
    throw new Error("expected an OpusHead, got none or a damaged one");
  const channels = head[9]!; // its length is checked above
  const preSkip = head[10]! | (head[11]! << 8);
  if (channels < 1 || channels > CHANNELS_MAX)
    throw new Error(`expected 1 to ${CHANNELS_MAX} channels, got ${channels}`);
  const isPlain = head[18] === 0;
  const mapping = isPlain ? [1, channels - 1, 0, 1].slice(0, 2 + channels) : head.subarray(19, 21 + channels);
  const [streamCount = 0, coupledStreamCount = 0, ...channelMappingTable] = mapping;
  const decoded = streamCount + coupledStreamCount;
  const isRight =
    channelMappingTable.length === channels &&
    streamCount >= 1 &&
    streamCount <= channels &&
    coupledStreamCount <= streamCount &&
    channelMappingTable.every((from) => from < decoded || from === 255); // 255: silence
  if (!isRight) throw new Error(`expected streams for ${channels} channels, got a damaged OpusHead`);
  return { channels, preSkip, streamCount, coupledStreamCount, channelMappingTable };
}

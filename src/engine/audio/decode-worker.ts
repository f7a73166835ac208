/** The thread that decodes one audio file: MP3, FLAC, Vorbis and Opus by libraries in WebAssembly, the rest by ours. */
import type { FLACDecoder } from "@wasm-audio-decoders/flac";
import type { MPEGDecoder } from "mpg123-decoder";
import CodecParser, { channels, codecFrames, data, header, sampleRate } from "codec-parser";
import type { CodecFrame, OggPage, OpusHeader } from "codec-parser";
import { messageOf } from "../../base/index.ts";
import type { AudioFormat } from "./format.ts";
import { adtsFrames, makeAacDecoder, openAac, type AacDecoder } from "./aac/decoder.ts";
import { importFlac, importMp3, importVorbis } from "./libraries.ts";
import { readMp4, type Mp4Sound } from "./mp4/read.ts";
import { openOpus } from "./opus.ts";
import { CHANNELS_MAX, makePart, makeSound, TooLong, type Sound } from "./sound.ts";
import { readWav } from "./wav.ts";
import { opusPackets } from "./webm.ts";

declare const self: Worker;

export interface DecodeJob {
  readonly format: AudioFormat;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly samplesMax: number;
}

/** One channel at 16,000 samples per second, or the problem. */
export type DecodeReply =
  { readonly samples: Float32Array } | { readonly isTooLong: true } | { readonly problem: string };

/** The libraries' result for some bytes of a file. */
interface Decoded {
  readonly channelData: readonly Float32Array[];
  readonly sampleRate: number;
  readonly errors: readonly unknown[];
}

/** Bytes that are decoded at once; 16 KiB give at most 40 MB of samples. */
const PIECE_BYTES = 16_384;

const readers: Readonly<Record<AudioFormat, (bytes: Uint8Array, sound: Sound) => void | Promise<void>>> = {
  WAV: readWav,
  MP3: readMp3,
  FLAC: readFlac,
  Ogg: readOgg,
  WebM: readWebm,
  MP4: readMp4Sound,
  AAC: readAac,
};

/** Skips tags and damage between frames, as players do. */
async function readMp3(bytes: Uint8Array, sound: Sound): Promise<void> {
  const decoder = await openMp3();
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    hear(sound, decoder.decode(bytes.subarray(at, at + PIECE_BYTES)));
}

async function openMp3(): Promise<MPEGDecoder> {
  const { MPEGDecoder } = await importMp3();
  const decoder = new MPEGDecoder();
  await decoder.ready;
  return decoder;
}

async function readFlac(bytes: Uint8Array, sound: Sound): Promise<void> {
  const decoder = await openFlac();
  for (const frame of parsed<CodecFrame>("audio/flac", bytes)) await hearFlac(frame, { decoder, sound });
}

async function openFlac(): Promise<FLACDecoder> {
  const { FLACDecoder } = await importFlac();
  const decoder = new FLACDecoder();
  await decoder.ready;
  return decoder;
}

async function hearFlac(frame: CodecFrame, { decoder, sound }: { decoder: FLACDecoder; sound: Sound }): Promise<void> {
  checkChannels(frame);
  const decoded = await decoder.decodeFrames([frame[data]]);
  if (decoded.errors.length > 0) throw new Error("damaged or cut off");
  hear(sound, decoded);
}

/** Ogg is a container of Vorbis, Opus or FLAC. */
async function readOgg(bytes: Uint8Array, sound: Sound): Promise<void> {
  let hearPage: ((page: OggPage) => Promise<void>) | undefined;
  let codec = "";
  for (const page of parsed<OggPage>("audio/ogg", bytes, (name) => (codec = name))) {
    hearPage ??= await oggReader(codec, sound);
    const [first] = page[codecFrames];
    if (first) checkChannels(first);
    await hearPage(page);
  }
}

async function oggReader(codec: string, sound: Sound): Promise<(page: OggPage) => Promise<void>> {
  if (codec === "vorbis") {
    const { OggVorbisDecoder } = await importVorbis();
    const decoder = new OggVorbisDecoder();
    await decoder.ready;
    return async (page) => hear(sound, await decoder.decodeOggPages([page]));
  }
  if (codec === "flac") {
    const decoder = await openFlac();
    return async (page) => {
      for (const frame of page[codecFrames]) await hearFlac(frame, { decoder, sound });
    };
  }
  let hearPacket: ((packet: Uint8Array) => void) | undefined;
  return async (page) => {
    for (const frame of page[codecFrames]) {
      hearPacket ??= await openOpus((frame[header] as OpusHeader)[data], sound);
      hearPacket(frame[data]);
    }
  };
}

async function readWebm(bytes: Uint8Array, sound: Sound): Promise<void> {
  let hearPacket: ((packet: Uint8Array) => void) | undefined;
  for (const { head, packet } of opusPackets(bytes)) {
    hearPacket ??= await openOpus(head, sound);
    hearPacket(packet);
  }
}

async function readMp4Sound(bytes: Uint8Array, sound: Sound): Promise<void> {
  const { codec, config, from, to, packets } = readMp4(bytes);
  const hearPacket = await MP4_CODECS[codec](config, makePart(sound, from, to));
  for (const packet of packets) hearPacket(packet);
}

const MP4_CODECS: Readonly<
  Record<Mp4Sound["codec"], (config: Uint8Array, sound: Sound) => Promise<(packet: Uint8Array) => void>>
> = {
  AAC: async (config, sound) => {
    const decoder = openAac(config);
    return (packet) => hearAac(decoder, { packet, blocks: 1 }, sound);
  },
  MP3: async (_, sound) => {
    const decoder = await openMp3();
    return (packet) => hear(sound, decoder.decode(packet));
  },
  Opus: openOpus,
};

function readAac(bytes: Uint8Array, sound: Sound): void {
  let decoder: AacDecoder | undefined;
  for (const { config, packet, blocks } of adtsFrames(bytes)) {
    if (decoder?.rate !== config.rate) decoder = makeAacDecoder(config);
    hearAac(decoder, { packet, blocks }, sound);
  }
}

function hearAac(decoder: AacDecoder, { packet, blocks }: { packet: Uint8Array; blocks: number }, sound: Sound): void {
  for (const channels of decoder.decode(packet, blocks)) sound.add(channels, decoder.rate);
}

/** The frames of a file, one by one, so that each is checked before it is decoded. */
function* parsed<Part extends CodecFrame | OggPage>(
  type: "audio/flac" | "audio/ogg",
  bytes: Uint8Array,
  onCodec: (name: string) => void = () => {},
): Iterable<Part> {
  const parser = new CodecParser<Part>(type, { onCodec, enableFrameCRC32: false });
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    yield* parser.parseChunk(bytes.subarray(at, at + PIECE_BYTES)) as unknown as Iterable<Part>;
  yield* parser.flush() as unknown as Iterable<Part>;
}

function checkChannels(frame: CodecFrame): void {
  const count = frame[header][channels];
  if (count >= 1 && count <= CHANNELS_MAX && frame[header][sampleRate] > 0) return;
  throw new Error(`expected 1 to ${CHANNELS_MAX} channels, got ${count}`);
}

function hear(sound: Sound, { channelData, sampleRate: rate }: Omit<Decoded, "errors">): void {
  if (channelData[0]?.length) sound.add(channelData, rate);
}

async function decode({ format, bytes, samplesMax }: DecodeJob): Promise<DecodeReply> {
  const sound = makeSound(samplesMax);
  await readers[format](bytes, sound);
  const samples = sound.end();
  return samples.length > 0 ? { samples } : { problem: "no sound in it: the file is empty, damaged or cut off" };
}

self.onmessage = async ({ data: job }: MessageEvent<DecodeJob>) => {
  console.log = console.warn = console.error = () => {}; // the libraries' messages
  const reply = await decode(job).catch((error: unknown): DecodeReply =>
    error instanceof TooLong ? { isTooLong: true } : { problem: messageOf(error) },
  );
  self.postMessage(reply, "samples" in reply ? [reply.samples.buffer as ArrayBuffer] : []);
};

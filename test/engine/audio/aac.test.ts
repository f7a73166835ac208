/** AAC packets to samples, beside FFmpeg's decoder. `bench/record-aac.py` made the files. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { BANDS } from "../../../src/engine/audio/aac/bands.ts";
import { Bits } from "../../../src/engine/audio/aac/bits.ts";
import { readChannel, type Channel } from "../../../src/engine/audio/aac/channel.ts";
import { adtsFrames, makeAacDecoder, type AacDecoder } from "../../../src/engine/audio/aac/decoder.ts";
import { readConfig } from "../../../src/engine/audio/aac/config.ts";
import { readLayout } from "../../../src/engine/audio/aac/layout.ts";
import { readMiddles } from "../../../src/engine/audio/aac/stereo.ts";
import { FACTOR_TABLE, SPECTRUM_TABLES } from "../../../src/engine/audio/aac/tables.ts";
import { decodeAudio } from "../../../src/engine/audio/decode.ts";
import { testRng } from "../../seed.ts";

const file = (name: string): Uint8Array => new Uint8Array(readFileSync(join(import.meta.dir, "aac", name)));
/** The recorded files have every eleventh sample. */
const STEP = 11;

/** All samples of each channel. */
function decoded(stream: Uint8Array): number[][] {
  const out: number[][] = [];
  let decoder: AacDecoder | undefined;
  for (const { config, packet, blocks } of adtsFrames(stream)) {
    decoder ??= makeAacDecoder(config);
    for (const channels of decoder.decode(packet, blocks))
      for (const [i, channel] of channels.entries()) (out[i] ??= []).push(...channel);
  }
  return out;
}

describe("samples equal FFmpeg's at", () => {
  test.each([
    ["8000", "8 kHz", 1],
    ["16000", "16 kHz", 1],
    ["24000", "24 kHz", 1],
    ["32000", "32 kHz", 1],
    ["44100", "44.1 kHz", 2],
    ["48000", "48 kHz", 1],
    ["64000", "64 kHz", 1],
    ["96000", "96 kHz", 1],
    ["crafted", "16 kHz with pulses, a program and data", 1],
  ])("%s: %s", (name, _, channels) => {
    const ours = decoded(file(`${name}.aac`)).map((channel) => channel.filter((__, i) => i % STEP === 0));
    const theirs = new Float32Array(file(`${name}.bin`).buffer);
    expect(ours.length).toBe(channels);
    expect(ours.flat().length).toBe(theirs.length);
    const largest = ours.flat().reduce((most, sample, i) => Math.max(most, Math.abs(sample - theirs[i]!)), 0);
    expect(largest).toBeLessThan(1e-6);
  });
});

test("the files have all windows, joined channels, noise and filters", () => {
  const [sequences, books, middles] = [new Set<number>(), new Set<number>(), new Set<boolean>()];
  let filters = 0;
  const note = ({ layout, books: used, shaping }: Channel): void => {
    sequences.add(layout.sequence);
    for (const book of used) books.add(book);
    filters += shaping.length;
  };
  for (const rate of ["24000", "44100", "64000"])
    for (const { config, packet } of adtsFrames(file(`${rate}.aac`))) {
      const [bits, bands] = [new Bits(packet, 7), BANDS[config.rateIndex]!]; // behind the element's name
      if (packet[0]! >> 5 === 0) note(readChannel(bits, bands, { shared: undefined, noise: Math.random }));
      if (packet[0]! >> 5 !== 1 || !bits.flag()) continue;
      const shared = readLayout(bits, bands);
      for (const middle of readMiddles(bits, shared)) middles.add(middle);
      note(readChannel(bits, bands, { shared, noise: Math.random }));
      note(readChannel(bits, bands, { shared, noise: Math.random }));
    }
  expect([...sequences].toSorted()).toEqual([0, 1, 2, 3]);
  expect([...books].toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15]);
  expect([...middles].toSorted()).toEqual([false, true]);
  expect(filters).toBeGreaterThan(0);
});

test("every code is complete, and has each symbol once", () => {
  for (const { counts, symbols } of [FACTOR_TABLE, ...SPECTRUM_TABLES]) {
    expect(counts.reduce((sum, count, i) => sum + count / 2 ** (i + 1), 0)).toBe(1);
    expect(symbols.toSorted((a, b) => a - b)).toEqual(symbols.map((_, i) => i));
    expect(counts.reduce((sum, count) => sum + count)).toBe(symbols.length);
  }
});

describe("the configuration", () => {
  /** Fields of some bits, one after another, and zeros. */
  const bytesOf = (...fields: readonly [value: number, bits: number][]): Uint8Array => {
    const text = fields.map(([value, bits]) => value.toString(2).padStart(bits, "0")).join("") + "0".repeat(16);
    return Uint8Array.from({ length: Math.floor(text.length / 8) }, (_, i) =>
      Number.parseInt(text.slice(8 * i, 8 * i + 8), 2),
    );
  };
  const [LC, SBR, PS] = [
    [2, 5],
    [5, 5],
    [29, 5],
  ] as [number, number][];
  test.each<[string, [number, number][], number, number]>([
    ["LC", [LC!, [4, 4], [2, 4]], 4, 44_100],
    ["HE-AAC, whose core has half the rate", [SBR!, [7, 4], [2, 4], [4, 4], LC!], 7, 22_050],
    ["HE-AAC of two channels in one", [PS!, [6, 4], [1, 4], [15, 4], [48_000, 24], LC!], 6, 24_000],
    ["a rate that is not in the table", [LC!, [15, 4], [37_800, 24], [1, 4]], 4, 37_800],
    ["a low rate", [LC!, [15, 4], [1000, 24], [1, 4]], 11, 1000],
  ])("of %s", (_, fields, rateIndex, rate) => {
    expect(readConfig(bytesOf(...fields))).toEqual({ rateIndex, rate });
  });

  test.each<[string, [number, number][]]>([
    ["expected AAC LC or HE-AAC, got Main", [[1, 5]]],
    [
      "expected AAC LC or HE-AAC, got xHE-AAC",
      [
        [31, 5],
        [10, 6],
      ],
    ],
    [
      "expected AAC LC or HE-AAC, got type 45",
      [
        [31, 5],
        [13, 6],
      ],
    ],
    ["expected AAC with frames of 1024 samples, got 960", [LC!, [4, 4], [2, 4], [1, 1]]],
    ["expected a sampling rate, got the index 13", [LC!, [13, 4]]],
  ])("is refused: %s", (message, fields) => {
    expect(() => readConfig(bytesOf(...fields))).toThrow(message);
  });
  test("is refused if it is cut off", () => {
    expect(() => readConfig(new Uint8Array(1))).toThrow("the packet is cut off");
  });
});

test("a stream that begins and ends in the middle of a frame, with damage between, keeps its other frames", () => {
  const whole = file("16000.aac");
  const frames = [...adtsFrames(whole)].length;
  const second = whole.indexOf(0xff, 7);
  const damaged = Buffer.concat([whole.subarray(3, second), Buffer.from("damage"), whole.subarray(second, -5)]);
  expect(frames).toBeGreaterThan(5);
  expect([...adtsFrames(damaged)].length).toBe(frames - 2);
});

/** Bytes of a header. The first one says the kind of AAC; of another kind, the file is refused. */
const HEADER = 7;

test("damaged packets give finite samples or none", async () => {
  const { float } = testRng("damaged AAC");
  const drawnFrom = (first: number, end: number): number => first + Math.floor(float() * (end - first));
  for (let run = 0; run < 40; run++) {
    const bytes = file(run % 2 ? "16000.aac" : "44100.aac");
    for (let i = 0; i < 30; i++) bytes[drawnFrom(HEADER, bytes.length)]! ^= 1 << drawnFrom(0, 8);
    for (const channel of decoded(bytes)) expect(channel.every(Number.isFinite)).toBe(true);
  }
  await expect(decodeAudio(file("16000.aac").subarray(0, 20))).rejects.toMatchObject({ code: "bad_request" });
});

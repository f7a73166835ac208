/** MP4 files to packets and samples. `bench/record-aac.py` made the files, with FFmpeg. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { decodeAudio } from "../../../src/engine/audio/decode.ts";
import { isAudio } from "../../../src/engine/audio/format.ts";
import { readMp4 } from "../../../src/engine/audio/mp4/read.ts";
import { testRng } from "../../seed.ts";

const file = (name: string): Buffer => readFileSync(join(import.meta.dir, name));
const aac = (name: string): Buffer => file(`aac/${name}`);

/** A box with these parts. */
const box = (name: string, ...parts: readonly (Uint8Array | readonly number[])[]): Buffer => {
  const data = Buffer.concat(parts.map((part) => Buffer.from(part)));
  const head = Buffer.from(`    ${name}`, "latin1");
  head.writeUInt32BE(8 + data.length);
  return Buffer.concat([head, data]);
};
const words = (...values: readonly number[]): Buffer => {
  const out = Buffer.alloc(4 * values.length);
  for (const [i, value] of values.entries()) out.writeUInt32BE(value >>> 0, 4 * i);
  return out;
};

/** Samples of the encoder's start, which an edit list leaves out and a stream does not; and samples of the voice. */
const [START, LENGTH] = [1024, 9600];

describe("samples equal those of the same packets in a stream:", () => {
  test.each<[string, string, from: number, length: number]>([
    ["aac/voice.m4a", "aac/16000.aac", START, LENGTH],
    ["aac/voice.mov", "aac/16000.aac", START, LENGTH],
    ["aac/video.mp4", "aac/16000.aac", START, LENGTH],
    ["aac/fragments.mp4", "aac/16000.aac", 0, START + LENGTH + 640],
    ["aac/fragments-video.mp4", "aac/16000.aac", 0, START + LENGTH + 640],
    ["aac/mp3.mp4", "files/tone.mp3", 0, 5184],
    ["aac/opus.mp4", "files/tone.opus", 0, 3970],
  ])("%s", async (name, stream, from, length) => {
    const [samples, all] = [await decodeAudio(file(name)), await decodeAudio(file(stream))];
    expect(samples.slice(0, length)).toEqual(all.slice(from, from + length));
    expect(samples.length - length).toBeLessThan(40); // the resampler's end
    expect(samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)).toBeGreaterThan(0.3);
  });
});

const CODEC = box("dOps", [0, 1, 0, 0], words(48_000), [0, 0, 0]);
const soundEntry = (name: string, ...more: readonly Uint8Array[]): Buffer => box(name, Buffer.alloc(28), ...more);
/** A movie with one track of Opus, whose table has these boxes. */
const movie = (table: readonly Uint8Array[], { kind = "soun", entry = soundEntry("Opus", CODEC) } = {}): Buffer => {
  const description = box("stsd", words(0, 1), entry);
  const handler = box("hdlr", words(0, 0), Buffer.from(kind));
  const media = box("mdia", handler, box("minf", box("stbl", description, ...table)));
  return Buffer.concat([box("ftyp", words(0, 0)), box("moov", box("trak", box("tkhd", words(0, 0, 0, 7)), media))]);
};
const sizes = (same: number, count: number, ...each: readonly number[]): Buffer =>
  box("stsz", words(0, same, count, ...each));
const chunks = (...at: readonly number[]): Buffer => box("stco", words(0, at.length, ...at));
const runs = (...fields: readonly number[]): Buffer => box("stsc", words(0, fields.length / 3, ...fields));
const packetsOf = (bytes: Uint8Array): number[][] => Array.from(readMp4(bytes).packets, (packet) => [...packet]);

describe("packets", () => {
  test("of chunks that have several runs, in any order in the file", () => {
    const data = Uint8Array.from({ length: 100 }, (_, i) => i);
    const table = (base: number): Buffer[] => [
      sizes(0, 6, 1, 2, 3, 4, 5, 6),
      runs(1, 2, 1, 3, 1, 1),
      chunks(base + 50, base + 10, base + 90),
    ];
    const base = movie(table(0)).length;
    expect(packetsOf(Buffer.concat([movie(table(base)), data]))).toEqual([
      [50],
      [51, 52],
      [10, 11, 12],
      [13, 14, 15, 16],
      [90, 91, 92, 93, 94],
    ]);
  });

  test("of one size and with places of 64 bits, up to the file's end", () => {
    const table = (base: number): Buffer[] => [sizes(4, 9), runs(1, 9, 1), box("co64", words(0, 1, 0, base))];
    const base = movie(table(0)).length;
    const bytes = Buffer.concat([movie(table(base)), Uint8Array.from({ length: 10 }, (_, i) => i)]);
    expect(packetsOf(bytes)).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ]);
  });
});

describe("decoding fails for", () => {
  test.each<[string, Uint8Array, string]>([
    ["Apple Lossless", aac("lossless.m4a"), "expected AAC, MP3 or Opus, got Apple Lossless, which `ffmpeg"],
    ["PCM", aac("pcm.mov"), "expected AAC, MP3 or Opus, got 'sowt'"],
    [
      "an encrypted track",
      movie([], { entry: soundEntry("enca") }),
      "expected AAC, MP3 or Opus, got an encrypted track",
    ],
    [
      "a codec whose name is no text",
      movie([], { entry: soundEntry("\x1b[2J") }),
      "expected AAC, MP3 or Opus, got '?[2J'",
    ],
    ["pictures alone", movie([], { kind: "vide" }), "expected a sound track, got none"],
    ["the beginning of a movie", aac("voice.m4a").subarray(0, 60), "expected the box 'moov', got none"],
    ["AAC without its configuration", movie([], { entry: soundEntry("mp4a") }), "expected the box 'esds', got none"],
    ["a table without packets", movie([sizes(0, 0), runs(), chunks()]), "no sound in it"],
    ["a table that is cut off", movie([sizes(0, 9), runs(1, 9, 1), chunks(0)]), "a box is damaged or cut off"],
    [
      "billions of empty packets",
      movie([sizes(0, 0xffff_ffff), runs(1, 0xffff_ffff, 1), chunks(0)]),
      "a box is damaged",
    ],
    [
      "billions of chunks",
      movie([sizes(1, 0xffff_ffff), runs(1, 0, 1), box("stco", words(0, 0xffff_ffff))]),
      "a box is",
    ],
  ])("%s", async (_, bytes, message) => {
    await expect(decodeAudio(bytes)).rejects.toMatchObject({
      code: "bad_request",
      message: expect.stringContaining(`audio: MP4: ${message}`),
    });
  });

  test("pictures in the same container", () => {
    for (const brand of ["heic", "heix", "mif1", "avif"]) expect(isAudio(box("ftyp", Buffer.from(brand)))).toBe(false);
    for (const brand of ["M4A ", "isom", "mp42", "qt  "]) expect(isAudio(box("ftyp", Buffer.from(brand)))).toBe(true);
  });
});

test("a damaged file gives finite samples or an error", async () => {
  const { float } = testRng("damaged MP4");
  for (const name of ["voice.m4a", "fragments.mp4", "opus.mp4", "mp3.mp4", "voice.mov"])
    for (let run = 0; run < 3; run++) {
      const bytes = aac(name);
      for (let i = 0; i < 12; i++) bytes[Math.floor(float() * bytes.length)]! ^= 1 << Math.floor(float() * 8);
      const end = await decodeAudio(bytes).catch(({ code }: { code: string }) => code);
      if (end instanceof Float32Array) expect(end.every(Number.isFinite)).toBe(true);
      else expect(end).toBe("bad_request");
    }
});

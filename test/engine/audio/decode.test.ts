/** Audio files to samples: every format, refusals, and files that are hostile. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { decodeAudio } from "../../../src/engine/audio/decode.ts";
import type { DecodeJob, DecodeReply } from "../../../src/engine/audio/decode-worker.ts";
import type { AudioFormat } from "../../../src/engine/audio/format.ts";
import { SAMPLE_RATE } from "../../../src/engine/audio/sound.ts";
import { bundled } from "../../bundled.ts";
import { wav } from "./wav-file.ts";

const file = (name: string): Uint8Array => readFileSync(join(import.meta.dir, "files", name));

/** The amplitude of one frequency. */
function amplitude(samples: Float32Array, hertz: number): number {
  let [re, im] = [0, 0];
  for (const [i, sample] of samples.entries()) {
    re += sample * Math.cos((2 * Math.PI * hertz * i) / SAMPLE_RATE);
    im += sample * Math.sin((2 * Math.PI * hertz * i) / SAMPLE_RATE);
  }
  return (2 * Math.hypot(re, im)) / samples.length;
}

describe("a tone of 440 Hz and a quarter of a second has its length and amplitude:", () => {
  test.each(["tone.flac", "tone.oga", "tone.ogg", "tone.opus"])("%s", async (name) => {
    const samples = await decodeAudio(file(name));
    expect(Math.abs(samples.length - SAMPLE_RATE / 4)).toBeLessThan(100); // Opus keeps the padding of its last frame
    expect(Math.abs(amplitude(samples, 440) - 0.5)).toBeLessThan(0.01);
  });
  test("tone.mp3 has the mean of its two channels", async () => {
    const samples = await decodeAudio(file("tone.mp3"));
    const middle = samples.subarray(1600, 3200); // its encoder adds silence at both ends
    expect(Math.abs(amplitude(middle, 440) - 0.25)).toBeLessThan(0.02);
    expect(Math.abs(amplitude(middle, 660) - 0.25)).toBeLessThan(0.02);
  });
});

describe("WAV", () => {
  const sine = Array.from({ length: 800 }, (_, i) => 0.5 * Math.sin((2 * Math.PI * 440 * i) / SAMPLE_RATE));
  const pcm = (bytes: 1 | 2 | 3 | 4): Uint8Array => {
    const data = Buffer.alloc(sine.length * bytes);
    for (const [i, value] of sine.entries()) {
      if (bytes === 1) data.writeUInt8(Math.round(value * 127) + 128, i);
      else data.writeIntLE(Math.round(value * (2 ** (8 * bytes - 1) - 1)), i * bytes, bytes);
    }
    return data;
  };
  const floats = new Uint8Array(Float32Array.from(sine).buffer);
  test.each<[string, Uint8Array, number]>([
    ["8 bits", wav(pcm(1), { bits: 8 }), 0.01],
    ["16 bits", wav(pcm(2), { bits: 16 }), 1e-4],
    ["24 bits", wav(pcm(3), { bits: 24 }), 1e-6],
    ["32 bits", wav(pcm(4), { bits: 32 }), 1e-6],
    ["16 bits, extensible", wav(pcm(2), { bits: 16, isExtensible: true }), 1e-4],
    ["floats", wav(floats, { bits: 32, encoding: 3 }), 1e-7],
    ["doubles", wav(new Uint8Array(Float64Array.from(sine).buffer), { bits: 64, encoding: 3 }), 1e-7],
    ["an unknown size", wav(floats, { bits: 32, encoding: 3, size: 0xffffffff }), 1e-7],
  ])("with %s has the samples that were written", async (_, bytes, bound) => {
    const samples = await decodeAudio(bytes);
    expect(samples.length).toBe(sine.length);
    expect(Math.max(...samples.map((value, i) => Math.abs(value - sine[i]!)))).toBeLessThan(bound);
  });

  test("in A-law and µ-law has the values of the standard's tables", async () => {
    const codes = Uint8Array.of(0x00, 0x55, 0x80, 0xd5, 0xaa, 0xff, 0x7f);
    const decoded = async (encoding: number): Promise<number[]> =>
      [...(await decodeAudio(wav(codes, { bits: 8, encoding })))].map((value) => value * 32_768);
    expect(await decoded(6)).toEqual([-5504, -8, 5504, 8, 32_256, 848, -848]);
    expect(await decoded(7)).toEqual([-32_124, -716, 32_124, 716, 5372, 0, 0].map((value) => value + 0));
  });

  test("with two channels is their mean, and at 44.1 kHz keeps its tone and its length", async () => {
    const both = Buffer.alloc(44_100 * 2 * 4);
    for (let i = 0; i < 44_100; i++) {
      both.writeFloatLE(0.8 * Math.sin((2 * Math.PI * 1000 * i) / 44_100), 8 * i);
      both.writeFloatLE(0.8 * Math.sin((2 * Math.PI * 10_000 * i) / 44_100), 8 * i + 4); // above what 16 kHz can hold
    }
    const samples = await decodeAudio(wav(both, { bits: 32, encoding: 3, channels: 2, rate: 44_100 }));
    expect(samples.length).toBe(SAMPLE_RATE);
    expect(Math.abs(amplitude(samples, 1000) - 0.4)).toBeLessThan(1e-3);
    expect(amplitude(samples.subarray(800, -800), 6000)).toBeLessThan(1e-4); // where 10 kHz would be mirrored to
  });
});

describe("decoding fails for", () => {
  const { EMPTY, SHORT } = { EMPTY: new Uint8Array(0), SHORT: new Uint8Array(8) };
  const cut = (name: string, bytes: number): Uint8Array => file(name).subarray(0, bytes);
  test.each<[string, Uint8Array, string]>([
    ["nothing", EMPTY, "audio: expected WAV, MP3, AAC, FLAC, Ogg, WebM or MP4 (M4A), got nothing"],
    ["a text", Buffer.from("hello, world"), "got a file that begins with 68 65 6c 6c 6f 2c 20 77"],
    ["no samples", wav(EMPTY, { bits: 16 }), "audio: WAV: no sound in it"],
    ["no format", Buffer.from("RIFF\0\0\0\0WAVEdata\x02\0\0\0\0\0", "latin1"), "audio: WAV: expected 'fmt ' before"],
    ["ADPCM", wav(SHORT, { bits: 4, encoding: 2 }), "got encoding 2 with 4 bits in 0 bytes"],
    ["65,535 channels", wav(SHORT, { bits: 16, channels: 65_535 }), "expected 1 to 8 channels, got 65535"],
    ["no rate", wav(SHORT, { bits: 16, rate: 0 }), "expected 1000 to 192000 samples per second, got 0"],
    ["NaN", wav(new Uint8Array(4).fill(0xff), { bits: 32, encoding: 3 }), "expected numbers, got the sample NaN"],
    ["an MP3 tag alone", Buffer.from("ID3\x04\0\0\0\0\0\0", "latin1"), "audio: MP3: no sound in it"],
    ["the beginning of a FLAC", cut("tone.flac", 100), "audio: FLAC: no sound in it"],
    ["the beginning of an Ogg", cut("tone.ogg", 100), "audio: Ogg: no sound in it"],
  ])("%s", async (_, bytes, message) => {
    await expect(decodeAudio(bytes)).rejects.toMatchObject({
      code: "bad_request",
      message: expect.stringContaining(message),
    });
  });

  test("a recording that is too long, before all of it is decoded", async () => {
    await expect(decodeAudio(file("tone.mp3"), { secondsMax: 0.1 })).rejects.toMatchObject({ code: "too_large" });
    const bytes = new Uint8Array(64 * 1024 * 1024 + 1);
    await expect(decodeAudio(bytes)).rejects.toMatchObject({ code: "too_large" });
  });

  test("a request that is cancelled", async () => {
    const signal = AbortSignal.abort();
    await expect(decodeAudio(file("tone.mp3"), { signal })).rejects.toMatchObject({ code: "cancelled" });
  });
});

test("a truncated file is decoded to its end, and a damaged one gives samples or an error", async () => {
  const whole = wav(new Uint8Array(2000).fill(1), { bits: 16 });
  expect((await decodeAudio(whole.subarray(0, 444))).length).toBe(200);
  for (const name of ["tone.flac", "tone.ogg", "tone.opus", "tone.mp3", "browser.webm"]) {
    const bytes = Buffer.from(file(name));
    for (let at = 60; at < bytes.length; at += 97) bytes[at]! ^= 0x5a;
    const end = await decodeAudio(bytes).catch(({ code }: { code: string }) => code);
    if (end instanceof Float32Array) expect(end.every(Number.isFinite)).toBe(true);
    else expect(end).toBe("bad_request");
  }
});

test("bundled, as in the compiled program, the thread reads every format", async () => {
  const worker = new Worker(await bundled(join(import.meta.dir, "../../../src/engine/audio/decode-worker.ts")));
  const decode = async (format: AudioFormat, bytes: Uint8Array): Promise<DecodeReply> => {
    const reply = new Promise<DecodeReply>((done) => (worker.onmessage = ({ data }) => done(data)));
    worker.postMessage({ format, bytes: new Uint8Array(bytes), samplesMax: SAMPLE_RATE } satisfies DecodeJob);
    return reply;
  };
  const files: [AudioFormat, string][] = [
    ["MP3", "tone.mp3"],
    ["FLAC", "tone.flac"],
    ["Ogg", "tone.ogg"],
    ["Ogg", "tone.oga"],
    ["Ogg", "tone.opus"],
    ["WebM", "browser.webm"],
    ["MP4", "../aac/voice.m4a"],
    ["AAC", "../aac/16000.aac"],
  ];
  for (const [format, name] of files)
    expect(await decode(format, file(name))).toEqual({ samples: await decodeAudio(file(name)) });
  worker.terminate();
});

/**
 * WebM files to Opus packets and samples. `browser.webm` and `browser-video.webm` are from the MediaRecorder of
 * Chromium 153; ffmpeg copied their packets to Ogg, and the packets of `tone.opus` to `tone.webm`.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { decodeAudio } from "../../../src/engine/audio/decode.ts";
import { opusPackets } from "../../../src/engine/audio/webm.ts";
import { testRng } from "../../seed.ts";
import { block, bytesOf, element, elements, ID, OPUS_HEAD, track, webm, type Lacing } from "./webm-file.ts";

const file = (name: string): Uint8Array => new Uint8Array(readFileSync(join(import.meta.dir, "files", name)));
const packetsOf = (bytes: Uint8Array): number[][] => Array.from(opusPackets(bytes), ({ packet }) => [...packet]);

describe("samples equal those of the same packets in Ogg:", () => {
  test.each([
    ["browser.webm", "browser.ogg"],
    ["browser-video.webm", "browser-video.ogg"],
    ["tone.webm", "tone.opus"],
  ])("%s", async (name, ogg) => {
    const samples = await decodeAudio(file(name));
    expect(samples.length).toBeGreaterThan(4000);
    expect(samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)).toBeGreaterThan(0.4);
    expect(samples).toEqual(await decodeAudio(file(ogg)));
  });
});

const packet = (length: number, first: number): Uint8Array => Uint8Array.from({ length }, (_, i) => (first + i) % 256);
const PACKETS = [packet(300, 1), packet(255, 2), packet(7, 3), packet(1, 4), packet(510, 5)];
const EVEN = [packet(20, 6), packet(20, 7), packet(20, 8)];
const simple = (...given: Parameters<typeof block>): Uint8Array => element(ID.simpleBlock, block(...given));
const grouped = (packets: readonly Uint8Array[]): Uint8Array =>
  element(ID.blockGroup, elements(element(ID.block, block(packets)), element(ID.discardPadding, bytesOf(1, 2))));
const each = (packets: readonly Uint8Array[]): Uint8Array => elements(...packets.map((one) => simple([one])));
const listed = (packets: readonly Uint8Array[]): number[][] => packets.map((one) => [...one]);

describe("the packets of a file", () => {
  test.each<[Lacing, Uint8Array[]]>([
    ["Xiph", PACKETS],
    ["EBML", PACKETS],
    ["fixed", EVEN],
    ["Xiph", [packet(9, 1)]],
  ])("with %s lacing are those that were laced", (lacing, packets) => {
    expect(packetsOf(webm({}, simple(packets, lacing), simple([packet(3, 9)])))).toEqual(
      listed([...packets, packet(3, 9)]),
    );
  });

  test.each<[string, 8 | "unknown" | undefined]>([
    ["the shortest", undefined],
    ["8-byte", 8],
    ["unknown", "unknown"],
  ])("with %s sizes of segment and clusters are in order", (_, size) => {
    const bytes = webm({ size }, each(PACKETS), grouped([packet(5, 7)]), each(EVEN));
    expect(packetsOf(bytes)).toEqual(listed([...PACKETS, packet(5, 7), ...EVEN]));
  });

  test("exclude voids, checksums, and other tracks, even those of sound", () => {
    const gap = elements(element(ID.void, packet(300, 0xa3)), element(ID.crc, packet(4, 0xa3)));
    const tracks = [track({ number: 1, kind: 1, codec: "V_VP8" }), gap, track({ number: 2 }), track({ number: 3 })];
    const blocks = [1, 2, 3].map((index) => simple([packet(8, index)], "none", index));
    expect(packetsOf(webm({ tracks }, elements(gap, ...blocks, gap), ...blocks))).toEqual(
      listed([packet(8, 2), packet(8, 2)]),
    );
  });

  test("continue after a second header, as of two recordings in one file", () => {
    const once = webm({ size: "unknown" }, each(PACKETS));
    expect(packetsOf(elements(once, once))).toEqual(listed([...PACKETS, ...PACKETS]));
  });

  test("continue at the next cluster after damage, and a damaged block has none", () => {
    const zeros = new Uint8Array(9);
    const long = element(ID.simpleBlock, block([packet(9, 1)]), 8);
    long.fill(0xee, 3, 9); // its size
    const bad = [
      elements(zeros, each(EVEN)),
      elements(long, each(EVEN)),
      elements(bytesOf(0xec, 0xff), new Uint8Array(127), each(EVEN)), // a void of unknown size, not of 127
      element(ID.simpleBlock, bytesOf(0x81, 0, 0)),
      element(ID.simpleBlock, bytesOf(0x81, 0, 0, 0x82, 1, 255)), // Xiph's: a size that is cut off
      element(ID.simpleBlock, bytesOf(0x81, 0, 0, 0x82, 1, 9, 1, 2)), // and one beyond the end
      element(ID.simpleBlock, bytesOf(0x81, 0, 0, 0x84, 1, 1, 2, 3)), // fixed: three bytes for two packets
      element(ID.simpleBlock, bytesOf(0x81, 0, 0, 0x86, 2, 0x81, 0x80, 1, 2)), // EBML's: 1, then 1 - 63
      element(ID.simpleBlock, bytesOf(0x81, 0, 0, 0x86, 1)),
    ];
    expect(packetsOf(webm({}, each(PACKETS), ...bad, each(PACKETS)))).toEqual(listed([...PACKETS, ...PACKETS]));
  });
});

describe("decoding fails for", () => {
  const head = (...tail: readonly number[]): Uint8Array => elements(OPUS_HEAD.subarray(0, 9), bytesOf(...tail));
  const of = (...options: Parameters<typeof track>): Uint8Array => webm({ tracks: [track(...options)] }, each(EVEN));
  test.each<[string, Uint8Array, string]>([
    ["pictures alone", of({ kind: 1, codec: "V_VP8" }), "expected a sound track, got none"],
    ["Vorbis", of({ codec: "A_VORBIS" }), "expected Opus, got the codec 'A_VORBIS'"],
    ["AAC before Opus", webm({ tracks: [track({ codec: "A_AAC" }), track()] }, each(EVEN)), "got the codec 'A_AAC'"],
    ["a compressed track", of({ more: element(ID.contentEncodings, bytesOf(1)) }), "got a compressed or encrypted one"],
    ["no OpusHead", of({ head: new Uint8Array(0) }), "expected an OpusHead, got none or a damaged one"],
    ["no channels", of({ head: head(0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }), "expected 1 to 8 channels, got 0"],
    ["9 channels", of({ head: head(9, 0, 0, 0, 0, 0, 0, 0, 0, 1) }), "expected 1 to 8 channels, got 9"],
    ["3 channels of 1 stream", of({ head: head(3, 0, 0, 0, 0, 0, 0, 0, 0, 0) }), "expected streams for 3 channels"],
    ["a missing stream", of({ head: head(1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1) }), "expected streams for 1 channels"],
    ["a packet of 4 kB", webm({}, simple([packet(3841, 0)])), "expected packets of at most 3840 bytes, got 3841"],
    ["an empty packet", webm({}, simple([new Uint8Array(0)])), "no sound in it"],
    ["a header alone", webm({}), "no sound in it"],
  ])("%s", async (_, bytes, message) => {
    await expect(decodeAudio(bytes)).rejects.toMatchObject({
      code: "bad_request",
      message: expect.stringMatching(new RegExp(`^audio: WebM: .*${message}`)),
    });
  });
});

describe("hostile files:", () => {
  /** The packets, or the refusal. Their views must lie in the file, without an overlap. */
  function read(bytes: Uint8Array): number[][] | string {
    let end = 0;
    const packets: number[][] = [];
    try {
      for (const { packet: one } of opusPackets(bytes)) {
        if (one.buffer !== bytes.buffer || one.byteOffset < end) return "a packet is not where it was";
        end = one.byteOffset + one.length;
        packets.push([...one]);
      }
    } catch (error) {
      return (error as Error).message;
    }
    return packets;
  }

  test("cut at every byte, a file has the packets before the cut", () => {
    const tracks = [track({ number: 1, kind: 1 }), track({ number: 2 })];
    const laced = simple(EVEN, "EBML", 2);
    for (const whole of [file("browser.webm"), file("tone.webm"), webm({ tracks }, laced, laced)]) {
      const all = packetsOf(whole);
      let most = 0;
      for (let length = 0; length < whole.length; length++) {
        const packets = read(whole.slice(0, length));
        expect(packets).toEqual(all.slice(0, packets.length));
        expect(packets.length).toBeGreaterThanOrEqual(most);
        most = packets.length;
      }
      expect(most).toBeGreaterThanOrEqual(all.length - EVEN.length);
    }
  });

  test("every byte flipped, and 10,000 random changes, give packets or a refusal", () => {
    const rng = testRng("webm");
    const upTo = (end: number): number => Math.floor(rng.float() * end);
    const whole = [
      file("browser.webm"),
      file("browser-video.webm"),
      webm({}, simple(PACKETS, "Xiph"), simple(EVEN, "EBML")),
    ];
    const refusals = new Set<string>();
    const note = (read: number[][] | string): void =>
      void (typeof read === "string" && refusals.add(read.replace(/'.*/s, "")));
    for (const original of whole)
      for (let at = 0; at < original.length; at++) {
        const bytes = original.slice();
        bytes[at]! ^= 0xff;
        note(read(bytes));
      }
    for (let i = 0; i < 10_000; i++) {
      const bytes = whole[i % whole.length]!.slice();
      for (let changes = 1 + upTo(8); changes > 0; changes--) bytes[upTo(bytes.length)] = upTo(256);
      if (i % 4 === 0) bytes.copyWithin(upTo(bytes.length), upTo(bytes.length), upTo(bytes.length));
      note(read(bytes));
    }
    const known = ["expected Opus, got the codec ", "expected a sound track, got none"];
    expect([...refusals]).toEqual(expect.arrayContaining(known));
    refusals.delete("expected a plain sound track, got a compressed or encrypted one");
    expect(refusals.size).toBe(known.length);
  });
});

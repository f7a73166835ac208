/** Image files to pixels: refusals before decoding, failures of single images, results. */
import { readFileSync } from "node:fs";
import { deflateSync } from "node:zlib";
import { describe, expect, test } from "bun:test";
import { decodeImage } from "../../../src/engine/vision/decode.ts";
import { readImageHeader } from "../../../src/engine/vision/image-header.ts";
import { goldenTest } from "../../golden.ts";
import { goldenPath } from "./golden.ts";
import { chunk, png } from "./vision-model.ts";

/** A GIF of two pixels, black and white, as one code each. */
const gif = Buffer.from("47494638396102000100800000000000ffffff2c0000000002000100000202440a003b", "hex");
/** A lossless WebP of one pixel, from libwebp. */
const webp = Buffer.from("UklGRhwAAABXRUJQVlA4TA8AAAAvAAAAAAcQ/Y/+ByKi/wEA", "base64");

test("colours are decoded exactly; alpha is dropped and gray is repeated", async () => {
  const rgb = await decodeImage(png(2, 1, { samples: Uint8Array.of(10, 20, 30, 40, 50, 60) }));
  expect(rgb).toEqual({ width: 2, height: 1, data: Uint8Array.of(10, 20, 30, 40, 50, 60) });
  const alpha = await decodeImage(png(1, 2, { colour: 6, samples: Uint8Array.of(10, 20, 30, 0, 40, 50, 60, 128) }));
  expect([...alpha.data]).toEqual([10, 20, 30, 40, 50, 60]);
  const gray = await decodeImage(png(2, 1, { colour: 0, samples: Uint8Array.of(7, 200) }));
  expect([...gray.data]).toEqual([7, 7, 7, 200, 200, 200]);
});

test("a GIF and a WebP are decoded too", async () => {
  expect([...(await decodeImage(gif)).data]).toEqual([0, 0, 0, 255, 255, 255]);
  const { width, height, data } = await decodeImage(webp);
  expect({ width, height, values: data.length }).toEqual({ width: 1, height: 1, values: 3 });
});

describe("animations are refused, and files that only look like one are not:", () => {
  const picture = gif.subarray(19, -1); // after the header and the palette
  const pause = Buffer.from("21f90400000000 00".replaceAll(" ", ""), "hex");
  const still = png(1, 1, { samples: Uint8Array.of(1, 2, 3) });
  const withFrames = (count: number): Buffer => {
    const data = Buffer.alloc(8);
    data.writeUInt32BE(count, 0);
    return Buffer.concat([still.subarray(0, 33), chunk("acTL", data), still.subarray(33)]); // after the header
  };
  const extended = (flags: number): Buffer => {
    const header = Buffer.alloc(30);
    header.write("RIFF\0\0\0\0WEBPVP8X", "latin1");
    header.writeUInt32LE(10, 16);
    header[20] = flags;
    return header;
  };
  test.each<[string, Uint8Array, boolean]>([
    ["a GIF of two pictures", Buffer.concat([gif.subarray(0, -1), pause, picture, Buffer.of(0x3b)]), true],
    ["a GIF of one picture with a pause", Buffer.concat([gif.subarray(0, 19), pause, picture, Buffer.of(0x3b)]), false],
    ["a GIF that ends in a second one", Buffer.concat([gif.subarray(0, -1), Buffer.of(0x2c)]), false],
    ["a PNG of three frames", withFrames(3), true],
    ["a PNG of one frame with an animation chunk", withFrames(1), false],
    ["a WebP with the animation flag", extended(0x02), true],
    ["a WebP with other flags", extended(0x10), false],
  ])("%s", (_, bytes, isAnimated) => {
    const read = (): unknown => readImageHeader(bytes);
    if (isAnimated) expect(read).toThrow(/image: \w+ of \d+×\d+: expected one picture, got an animation/);
    else expect(read).not.toThrow();
  });
});

describe("the first bytes suffice to refuse", () => {
  const large = png(1, 1, { samples: Uint8Array.of(1, 2, 3) });
  large.writeUInt32BE(10_000, 16);
  large.writeUInt32BE(5000, 20);
  const none = Buffer.from(gif);
  none.writeUInt16LE(0, 6);
  const cases: readonly (readonly [string, Uint8Array, string])[] = [
    ["nothing", new Uint8Array(0), "image: expected PNG, JPEG, WebP or GIF, got nothing"],
    ["a text", Buffer.from("hello, world"), "got a file that begins with 68 65 6c 6c 6f 2c 20 77"],
    ["a PNG's signature", large.subarray(0, 12), "image: PNG: expected a size, got none"],
    ["a JPEG without a frame", Buffer.from("ffd8ffe000040000ffd9", "hex"), "image: JPEG: expected a size, got none"],
    ["no width", none, "image: GIF: expected a size, got 0×1"],
    ["50 megapixels", large, "expected at most 40 megapixels and 32768 to a side, got 10000×5000 (50.0 megapixels)"],
  ];
  test.each(cases)("%s", (_, bytes, message) => expect(() => readImageHeader(bytes)).toThrow(message));
});

test("an error about a damaged file names its format and size", async () => {
  const whole = png(64, 64, {
    samples: new Uint8Array(64 * 64 * 3).map((_, i) => (i * 7919) % 251),
  });
  const message = "image: PNG of 64×64: damaged or cut off";
  await expect(decodeImage(whole.subarray(0, whole.length - 400))).rejects.toThrow(message);
  const flipped = Buffer.from(whole);
  flipped.fill(0xaa, 60, 200);
  await expect(decodeImage(flipped)).rejects.toThrow(message);
});

describe("extra chunks of a PNG do not change its pixels:", () => {
  const samples = Uint8Array.from({ length: 5 * 4 * 3 }, (_, i) => (i * 89) % 256);
  const whole = png(5, 4, { samples });
  const latin = (text: string): Uint8Array => Buffer.from(text, "latin1");
  const profile = (data: Uint8Array): Uint8Array => Buffer.concat([latin("ICC\0\0"), data]);
  const gamma = chunk("gAMA", Uint8Array.of(0, 0, 177, 143));
  test.each<[string, Uint8Array[]]>([
    ["a text without an end of its keyword", [chunk("tEXt", latin("abc"))]],
    ["a keyword that is too long", [chunk("tEXt", latin(`${"a".repeat(100)}\0b`))]],
    ["a text that is no UTF-8", [chunk("iTXt", latin("a\0\x07\x07\xff\xff"))]],
    ["an unknown unit", [chunk("pHYs", Uint8Array.of(0, 0, 1, 0, 0, 0, 1, 0, 2))]],
    ["an unknown intent", [chunk("sRGB", Uint8Array.of(7))]],
    ["too few chromaticities", [chunk("cHRM", Uint8Array.of(1))]],
    ["two gammas", [gamma, gamma]],
    ["a gamma of 1", [chunk("gAMA", Uint8Array.of(0, 1, 0x86, 0xa0))]],
    ["a profile that is damaged", [chunk("iCCP", profile(latin("garbage")))]],
    ["a profile of 50 MB", [chunk("iCCP", profile(deflateSync(Buffer.alloc(50_000_000, 7))))]],
    ["a frame without an animation", [chunk("fcTL", new Uint8Array(26))]],
    ["an animation of one frame", [chunk("acTL", Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 0)), chunk("fcTL", frameOf(5, 4))]],
    ["transparency that is too long", [chunk("tRNS", new Uint8Array(99))]],
  ])("%s", async (_, extras) => {
    const bytes = Buffer.concat([whole.subarray(0, 33), ...extras, whole.subarray(33)]); // after the header
    expect((await decodeImage(bytes)).data).toEqual(samples);
  });
});

/** A frame of an animation: the whole picture. (PNG third edition, 11.3.2.3) */
function frameOf(width: number, height: number): Uint8Array {
  const data = Buffer.alloc(26);
  data.writeUInt32BE(width, 4);
  data.writeUInt32BE(height, 8);
  return data;
}

test("an aborted signal ends decoding", async () => {
  const image = png(1, 1, { samples: Uint8Array.of(1, 2, 3) });
  await expect(decodeImage(image, AbortSignal.abort())).rejects.toThrow("cancelled by the caller");
});

goldenTest("pictures have the reference's pixels", async () => {
  for (const name of ["gradient", "alpha", "scene"]) {
    const { data } = await decodeImage(readFileSync(goldenPath(`images/${name}.png`)));
    expect(Buffer.compare(data, readFileSync(goldenPath(`images/${name}.rgb.u8`))), name).toBe(0);
  }
});

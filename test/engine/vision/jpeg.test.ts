/**
 * JPEG against stb_image, which the reference uses: small pictures of each kind (made with Pillow 12), and the pixels
 * by stb_image 2.30. The library rounds differently, by up to three levels.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { decodeImage } from "../../../src/engine/vision/decode.ts";
import { readImageHeader } from "../../../src/engine/vision/image-header.ts";
import { cleanJpeg } from "../../../src/engine/vision/jpeg.ts";
import { goldenTest } from "../../golden.ts";
import { goldenPath } from "./golden.ts";
import { pictures } from "./jpegs.ts";

const bytesOf = (base64: string): Uint8Array<ArrayBuffer> => new Uint8Array(Buffer.from(base64, "base64"));
const SIZE = { width: 21, height: 13 };

/** Difference of two pictures, in levels of 255: largest and mean. */
function distance(a: Uint8Array, b: Uint8Array): { most: number; mean: number } {
  expect(a.length).toBe(b.length);
  const apart = a.map((value, i) => Math.abs(value - b[i]!));
  return { most: Math.max(...apart), mean: apart.reduce((sum, each) => sum + each, 0) / a.length };
}

function expectAlike(data: Uint8Array, reference: Uint8Array): void {
  const { most, mean } = distance(data, reference);
  expect(most).toBeLessThanOrEqual(3);
  expect(mean).toBeLessThanOrEqual(0.5);
}

test.each(pictures)("%s has the reference's pixels within rounding", async (_, pixels, base64) => {
  const { data, ...size } = await decodeImage(bytesOf(base64));
  expect(size).toEqual(SIZE);
  expectAlike(data, bytesOf(pixels));
});

goldenTest("a photograph has the reference's pixels within rounding", async () => {
  const { data } = await decodeImage(new Uint8Array(readFileSync(goldenPath("images/lines.jpg"))));
  expectAlike(data, new Uint8Array(readFileSync(goldenPath("images/lines.rgb.u8"))));
});

test("a file truncated anywhere is refused", async () => {
  for (const [, , base64] of pictures) {
    const whole = bytesOf(base64);
    for (let length = 3; length < whole.length - 2; length += 41) {
      await expect(decodeImage(whole.subarray(0, length)), `${length} bytes`).rejects.toThrow(/^image: JPEG/);
    }
  }
});

test("a file with an end marker in the middle of its pixels is refused", async () => {
  const whole = bytesOf(pictures[2]![2]);
  const short = Uint8Array.of(...whole.subarray(0, -14), 0xff, 0xd9);
  await expect(decodeImage(short)).rejects.toThrow("cut off");
});

test("a file with a changed byte is an error or a picture of its size", async () => {
  const whole = bytesOf(pictures[0]![2]);
  for (let at = 2; at < whole.length; at += 13) {
    const changed = whole.slice();
    changed[at] = changed[at]! ^ 0x55;
    const result = await decodeImage(changed).catch((error: unknown) => {
      expect(["bad_request", "too_large"]).toContain((error as { code: string }).code);
    });
    if (result) expect(result.data.length).toBe(result.width * result.height * 3);
  }
});

test("bytes between segments are skipped", async () => {
  for (const [, pixels, base64] of pictures) {
    const whole = bytesOf(base64);
    const second = 4 + new DataView(whole.buffer).getUint16(4); // after the first segment
    for (const padding of [[0], [0, 0, 0], [0xff, 0xff], [0x12, 0x34, 0xff]]) {
      const padded = Uint8Array.of(...whole.subarray(0, second), ...padding, ...whole.subarray(second));
      expect(readImageHeader(padded)).toMatchObject(SIZE);
      expectAlike((await decodeImage(padded)).data, bytesOf(pixels));
    }
  }
});

test("a frame of another size than the header's is refused before the decoder, even if hidden", () => {
  const whole = bytesOf(pictures[0]![2]);
  const frame = [0xff, 0xc0, 0, 17, 8, 0xff, 0xf0, 0xff, 0xf0, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1];
  const segment = [0xff, 0, 0, 2 + frame.length, ...frame]; // a reader that mistakes 00 for a marker skips it
  const hiding = Uint8Array.of(...whole.subarray(0, 2), ...segment, ...whole.subarray(2));
  expect(readImageHeader(hiding)).toMatchObject(SIZE);
  expect(() => cleanJpeg(hiding, SIZE)).toThrow("a frame of 65520×65520");
  expect(() => cleanJpeg(whole, { width: 20, height: 13 })).toThrow("a frame of 21×13");
  const own = whole.subarray(whole.findIndex((byte, at) => byte === 0xff && whole[at + 1] === 0xc0));
  const twice = Uint8Array.of(...whole.subarray(0, -2), ...own);
  expect(() => cleanJpeg(twice, SIZE)).toThrow("a second frame");
});

test("metadata is removed before the decoder", () => {
  const whole = bytesOf(pictures[0]![2]);
  const comment = [0xff, 0xfe, 0, 6, 1, 2, 3, 4];
  const exif = [0xff, 0xe1, 0, 8, 0x45, 0x78, 0x69, 0x66, 0, 0];
  const more = Uint8Array.of(...whole.subarray(0, 2), ...comment, ...exif, ...whole.subarray(2));
  expect(cleanJpeg(more, SIZE)).toEqual(cleanJpeg(whole, SIZE));
});

/** The first picture with other bytes in its frame: how many bits, which coding, how many components. */
function withFrame(changes: Readonly<Record<number, number>>): Uint8Array<ArrayBuffer> {
  const bytes = bytesOf(pictures[0]![2]);
  const at = bytes.findIndex((byte, i) => byte === 0xff && bytes[i + 1] === 0xc0);
  for (const [offset, value] of Object.entries(changes)) bytes[at + Number(offset)] = value;
  return bytes;
}

test.each([
  ["12 bits", { 4: 12 }, "12 bits per sample"],
  ["CMYK", { 9: 4 }, "colours for print (CMYK): save it as RGB"],
  ["two components", { 9: 2 }, "2 components"],
  ["lossless coding", { 1: 0xc3 }, "lossless or arithmetic coding"],
  ["arithmetic coding", { 1: 0xc9 }, "lossless or arithmetic coding"],
])("%s is refused with the reason", async (_, changes, reason) => {
  await expect(decodeImage(withFrame(changes))).rejects.toThrow(reason);
});

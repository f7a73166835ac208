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

const pictures: readonly (readonly [name: string, pixels: string, base64: string])[] = [
  [
    "4:2:0, 21×13",
    "QnkeKlsCvOCJ0eST5OCW2b17/9KV/7yFpUkWsUIUuz4SwTkRxDYOxzMLxzIIyjEIzzIJ0TIK0jML0zQM0zQMvuaQ2vyo1uyaw8d77NuV6MKB/9qehTQAqkYVtD8TvDsRwjcOxjQLxzIKyjEIyy8H0jUM0zQM1TYO1TYO1TYO2uKVr7Nn59+X89yZ7MSGh0wSiTkEtVMksj8TuzoSwTYPxzMNyjAKzS8KzC4HzS4H1TYO1jcP1zgQ1zgQ1zgQ/eGg/N2d+tKVcz8FhD8IsV4qpD8Roy4DujkRwjQOxzEMzDAKzi4K0C4I0S0I0C4H1TYO1TYO1jcP1zgQ1zgQ/8uW9K56kkQTjTUFvVgslyYAvkAYxTsWxjIOzC8Mzy8L0i4J1C0J1S0I1S0I1C4I0zQM0zYN1DcO1TgP1TgPhB8AsEYctEQcrzkRwUMdtCsHvi4L0jkXzy8N0i4L1S4K1i4J1y8K1y8I2DAJ1zEJ0zQM0zYN1DcO1DcO1DcOvjwatC8M0kknoxcAsh8A40oquxwA1zQT1S4O1y4N1y8L2DAL2DIK2TMJ1zQJ1zYM1DcO1DgP1TkQ1joR1joRuCMF0jsevyUJ1Dkb0DETwyAB2DMTzygG1y4N1zAM1zEL1jMK1jUJ1TcK1TgL1TgL1ToO1joR1zsS2DwT2DwTxykMxCYJxCUIxyYJzisM0y4O1DAN0y8K0CwH0jAJ0TQJzzQGyTEAyDIAyjYE0TsJ0TgM0TgO0jkP0jkP0zoQyywOySoMySgLyyoLzy8N0zMP1DUO0zQMzC8GzjMHzTYHyjYExjUAxjUAyDgDzDwI0DkM0TgO0jkP0jkP0zoQxCoIwigGwCYEwigExiwIyjAKyjEIyDEGyTIFyTUFyjgFyTkExTgCxTgAxjsCyTwGzjoM0DkO0ToP0ToP0jsQwSsIvykEvScCvikBwi0FxjEHxTIGxDIDxzUExzcDyTkExzoCxzoCxzsAxzsAyjsDzjoK0DkO0ToP0ToP0jsQxzgQxDULwjMJwzQIxzgMyTsNyTsLyDoIxjYCxzcCyDgDyzoDzTwDzjwBzDoAyjcBzjoKzjkOzzoPzzoP0DsQ",
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAANABUDASIAAhEBAxEB/8QAFwABAQEBAAAAAAAAAAAAAAAAAgABBf/EACAQAAEEAQQDAAAAAAAAAAAAAAEAAhEhBAMFMUETUaH/xAAXAQADAQAAAAAAAAAAAAAAAAABAwUG/8QAGBEAAwEBAAAAAAAAAAAAAAAAAAIDARH/2gAMAwEAAhEDEQA/AFm7+9zfBtumMXHioaA65nihz1fcrjwSi0QTfxMCp9KKzGojGcs4mCiuFLQpAd0//9k=",
  ],
  [
    "progressive, 4:2:2",
    "sj4ngC0L2s6SweqbrvudlOB+zO6Y3tCHllEYrUQUuT8QwToNxTYKzTEI1SwF2CoF1S8J0zEK1DIL1TMM1TMM19eX6POvz+6iq9KDyuucx9KG/+KjgjUBuD4VyjQR1C8P1y0M1C0J0C4Hzi8FzS4E1TMM1TMM1zUO1zUO1zUOkv+dctBvwPKd4eSd78KJl0MVoiwI1kIk1ysT5CUQ6yEN6yEL4iUI1ysHxjIEwjQE0zcO2DYP2TcQ2TcQ2TcQnP+isv+f3eGVejsGqCwK40QuzykTxhwD1isR2ycO5SIM5iIK4iUI1yoIxTQHwjUH0zcO1zUO2DYP2TcQ2TcQ2uWW0796mEIRriUF7z4qyA0A2zEY0DUWwDUOvzUOyjIN0S4L1S0J1C0JyzIIyjMI0jUM1jQN1zUO2DYP2DYPiB0Au0EYzTgY0SkP5TEa0B0GySgJzDwXuToNtTwNujwMwDkMyjUL0DIL1TEM1zAM1jIM1jQN1zUO1zUO1zUO1jETxyYH20UiqBUAsx8A40oovBwA1zQT0DAOzDQPxTgNwzoOxzoPzzcQ2jEQ3jER2jMP2DYP2TcQ2jgR2jgRxh0A1TsXri8CukgWtEAPsSkA3DET3x8I7CQN5ycO1zAOzDcPyToQzjkR3DMS4DES3DUR2jgR2zkS3DoT3DoTxCsLwSgIwCcFwikHyC4MzDIQzzIPzjEOzC4JzzEM0jMM0TILzS4GzS4G0zEK1jcP1DcO0zcO1DgQ1DgQ1TkRxS8Mwy0KxCsJxi0LyjINzjYR0DYQzzUPyy8HzjIK0TQL0DMKzi8Hzi8H0TII1TYM1DcM0zgM1DkN1DkN1ToOwSsIvykGvScCvykExS0IyTEMyjAKyS8JzDAIzjIK0TQL0TQLzzIHzzIH0jMJ1DYJ1DgI0zkH1DoI1DoI1TsJwCwGvioEvCgAvSkBwi0FxjEJyDAHxy8GyzIIzDMJ0DUJ0DUJ0DUH0DUH0TQH0jYG0zkF0zkD1DoG1DoG1TsHyTcOxjQLxDMHxTQIyjcMzDkOzTgNzDcMyjMGyzQHzTUGzzcI0TkI0TkI0TYGzzUD0zkF0zkD1DoG1DoG1TsH",
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wgARCAANABUDASEAAhEBAxEB/8QAFwAAAwEAAAAAAAAAAAAAAAAAAAECBP/EABgBAAIDAAAAAAAAAAAAAAAAAAACAwQF/9oADAMBAAIQAxAAAAF46ekxZpYtAf/EABYQAAMAAAAAAAAAAAAAAAAAAAIDIP/aAAgBAQABBQI31//EABgRAAIDAAAAAAAAAAAAAAAAAAEDEiBh/9oACAEDAQE/AUrgNp//xAAVEQEBAAAAAAAAAAAAAAAAAAABIP/aAAgBAgEBPwFj/8QAGRAAAQUAAAAAAAAAAAAAAAAAAQIDERIg/9oACAEBAAY/AobFU6//xAAXEAEBAQEAAAAAAAAAAAAAAAABECGR/9oACAEBAAE/IVTmtpf/2gAMAwEAAgADAAAAEA5z/8QAGREBAAIDAAAAAAAAAAAAAAAAAQAhEDFh/9oACAEDAQE/EBvtbe4GM//EABcRAQEBAQAAAAAAAAAAAAAAAAEAERD/2gAIAQIBAT8QW8WNv//EABsQAAIDAQEBAAAAAAAAAAAAAAERACExQVGh/9oACAEBAAE/EFyIpALN5Q3l9cRMVZARN/IBT8gn/9k=",
  ],
  [
    "4:4:4 with restarts",
    "ky8Tl2k4mLdrkPGKi/+Tl/qNs+uKyuCLzzMNzzMNzzMNzzMNzzMNzzMNzzMNzzMN0zEK1TMM1jQN2DYP2DYP3taYyNiRtuiTuf6hy/+o0eSSwKFeq2owzzMNzzMNzzMNzzMNzzMNzzMNzzMNzzMN1DIL1TMM1zUO2DYP2DYPqf6gr/qdtOmRtMV3sZJRs10suDINvRwAzzMNzzMNzzMNzzMNzzMNzzMNzzMNzzMN1DIL1jQN1zUO2TcQ2TcQm/yVqeqOtL9zsX1Dqj0UuB0A2iEM9jEezzMNzzMNzzMNzzMNzzMNzzMNzzMNzzMN1TMM1zUO2DYP2jgR2jgRytiLtKVgomMtrDgRxC0O2jAW3TAS1SoMzzMNzzMNzzMNzzMNzzMNzzMNzzMNzzMN1jQN2DYP2TcQ2zkS2zkSrVIlrkIbsS8NvCMEwyIFxykGwi4GvDIEzzMNzzMNzzMNzzMNzzMNzzMNzzMNzzMN1zUO2TcQ2jgR3DoT3DoTsw4AzCcR4z8m4D8izjEOwi0Fzz4S4FMlzzMNzzMNzzMNzzMNzzMNzzMNzzMNzzMN2DYP2TcQ2zkS3DoT3DoT7i4h3CUTyR8GwiUEyTEMyzMKxCgAuhsAzzMNzzMNzzMNzzMNzzMNzzMNzzMNzzMN2DYP2jgR2zkS3TsU3TsUyzEPxiwIwigCwyoByC8DzDQDzDQCyjIAzjgGzDYEyTMBxzEAyDIAzDYE0DoI0jwK1jgI1TkI1DkJ0jkNzzoQyzEPxiwIwykDxCsCyTAEzDQDzDQCyjIAzTcFzDYEyTMByDIAyTMBzDYE0DoI0jwK1jgI1TkI1DkJ0jkNzzoQyTMQxC4JwCsDwSwCxjIEyjYEyjcDyDUBzTcFzDYEyzUDyjQCyzUDzTcF0DoI0jwK1jgI1TkI1DkJ0jkNzzoQyTURxDAKwCwEwS4DxjQFyjgFyjkEyDcCzDYEzDYEzDYEzTcFzjgGzzkH0DoI0TsJ1jgI1TkI1DkJ0jkNzzoQxzcSwjMLvi8FvzAExDYGyDsGyDsFxjkDzDYEzTcFzjgGzzkH0DoI0TsJ0TsJ0TsJ1jgI1TkI1DkJ0jkNzzoQ",
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKBTmCNl4x9lnN+gXz/2wBDARUXFx4aHjshITt8U0ZTfHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHz/wAARCAANABUDAREAAhEBAxEB/8QAFgABAQEAAAAAAAAAAAAAAAAABAEC/8QAHxAAAgAFBQAAAAAAAAAAAAAAAAECAwQFIRETQWHh/8QAGQEAAgMBAAAAAAAAAAAAAAAAAAUBAgQG/8QAGhEBAQACAwAAAAAAAAAAAAAAAAEDBBESIf/dAAQAAv/aAAwDAQACEQMRAD8AtRdImtukhUiV0kn4YLTDFpyXtl9oBVvf/9AemBa6BhLLCqcv/9ESXIsPlJgr/9k=",
  ],
  [
    "gray",
    "SkpKcXFxpaWlyMjI09PT0NDQz8/P0NDQXV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dX19fYGBgYmJiYmJi0dHRy8vLz8/P39/f6urq1dXVo6Ojd3d3XV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dXl5eX19fYWFhYmJiYmJi2tra2dnZz8/Pt7e3lJSUcXFxVlZWSUlJXV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dXl5eYGBgYWFhY2NjY2Nj09PTzMzMs7OzhoaGWVlZSEhIVlZWampqXV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dX19fYWFhYmJiZGRkZGRky8vLoqKicHBwVlZWV1dXYGBgYGBgWlpaXV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dYGBgYmJiY2NjZWVlZWVlaGhoXl5eUlJSTU1NT09PVFRUVlZWVlZWXV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dYWFhY2NjZGRkZmZmZmZmPT09VlZWbW1tbGxsXFxcVVVVZGRkeHh4XV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dYmJiY2NjZWVlZmZmZmZmZmZmWlpaT09PUFBQWlpaXFxcUlJSRkZGXV1dXV1dXV1dXV1dXV1dXV1dXV1dXV1dYmJiZGRkZWVlZ2dnZ2dnW1tbVlZWUlJSU1NTWFhYXFxcXFxcWlpaX19fXV1dWlpaWFhYWVlZXV1dYWFhY2NjYmJiYmJiYmJiYmJiYmJiW1tbVlZWU1NTVFRUWVlZXFxcXFxcWlpaXl5eXV1dWlpaWVlZWlpaXV1dYWFhY2NjYmJiYmJiYmJiYmJiYmJiXFxcV1dXU1NTVFRUWVlZXV1dXV1dW1tbXl5eXV1dXFxcW1tbXFxcXl5eYWFhY2NjYmJiYmJiYmJiYmJiYmJiXV1dWFhYVFRUVVVVWlpaXl5eXl5eXFxcXV1dXV1dXV1dXl5eX19fYGBgYWFhYmJiYmJiYmJiYmJiYmJiYmJiXl5eWVlZVVVVVlZWW1tbX19fX19fXV1dXV1dXl5eX19fYGBgYWFhYmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJi",
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKBTmCNl4x9lnN+gXz/wAALCAANABUBAREA/8QAFgABAQEAAAAAAAAAAAAAAAAAAgEE/8QAHxAAAgAFBQAAAAAAAAAAAAAAAAECAwQFIRETQWHh/9oACAEBAAA/ALUXSJrbpIVIldJJ+GAWmAJZYkuSn//Z",
  ],
];
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

test.each(pictures)("%s: the pixels are the reference's, but for rounding", async (_, pixels, base64) => {
  const { data, ...size } = await decodeImage(bytesOf(base64));
  expect(size).toEqual(SIZE);
  expectAlike(data, bytesOf(pixels));
});

goldenTest("a photograph comes out as the reference decodes it, but for rounding", async () => {
  const { data } = await decodeImage(new Uint8Array(readFileSync(goldenPath("images/lines.jpg"))));
  expectAlike(data, new Uint8Array(readFileSync(goldenPath("images/lines.rgb.u8"))));
});

test("a file that is cut off anywhere is refused", async () => {
  for (const [, , base64] of pictures) {
    const whole = bytesOf(base64);
    for (let length = 3; length < whole.length - 2; length += 41) {
      await expect(decodeImage(whole.subarray(0, length)), `${length} bytes`).rejects.toThrow(/^image: JPEG/);
    }
  }
});

test("a file that ends in the middle of its pixels is refused, although it says that it ends there", async () => {
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

test("a frame of another size than the header's, however it is hidden, never reaches the decoder", () => {
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

test("metadata never reaches the decoder", () => {
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

/**
 * JPEG against stb_image, by which the reference decodes: small pictures of each kind (made with Pillow 12), and a CRC
 * of the pixels that stb_image 2.30 makes of them.
 */
import { readFileSync } from "node:fs";
import { expect, test } from "bun:test";
import { readImageHeader } from "../../src/vision/image-header.ts";
import { decodeJpeg } from "../../src/vision/jpeg.ts";
import { goldenTest } from "../golden.ts";
import { goldenPath } from "./golden.ts";

const pictures: readonly (readonly [name: string, crc: number, base64: string])[] = [
  [
    "4:2:0, 21×13",
    0x16f9b085,
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAANABUDASIAAhEBAxEB/8QAFwABAQEBAAAAAAAAAAAAAAAAAgABBf/EACAQAAEEAQQDAAAAAAAAAAAAAAEAAhEhBAMFMUETUaH/xAAXAQADAQAAAAAAAAAAAAAAAAABAwUG/8QAGBEAAwEBAAAAAAAAAAAAAAAAAAIDARH/2gAMAwEAAhEDEQA/AFm7+9zfBtumMXHioaA65nihz1fcrjwSi0QTfxMCp9KKzGojGcs4mCiuFLQpAd0//9k=",
  ],
  [
    "progressive, 4:2:2",
    0x71afc17e,
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wgARCAANABUDASEAAhEBAxEB/8QAFwAAAwEAAAAAAAAAAAAAAAAAAAECBP/EABgBAAIDAAAAAAAAAAAAAAAAAAACAwQF/9oADAMBAAIQAxAAAAF46ekxZpYtAf/EABYQAAMAAAAAAAAAAAAAAAAAAAIDIP/aAAgBAQABBQI31//EABgRAAIDAAAAAAAAAAAAAAAAAAEDEiBh/9oACAEDAQE/AUrgNp//xAAVEQEBAAAAAAAAAAAAAAAAAAABIP/aAAgBAgEBPwFj/8QAGRAAAQUAAAAAAAAAAAAAAAAAAQIDERIg/9oACAEBAAY/AobFU6//xAAXEAEBAQEAAAAAAAAAAAAAAAABECGR/9oACAEBAAE/IVTmtpf/2gAMAwEAAgADAAAAEA5z/8QAGREBAAIDAAAAAAAAAAAAAAAAAQAhEDFh/9oACAEDAQE/EBvtbe4GM//EABcRAQEBAQAAAAAAAAAAAAAAAAEAERD/2gAIAQIBAT8QW8WNv//EABsQAAIDAQEBAAAAAAAAAAAAAAERACExQVGh/9oACAEBAAE/EFyIpALN5Q3l9cRMVZARN/IBT8gn/9k=",
  ],
  [
    "4:4:4 with restarts",
    0xce7341db,
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKBTmCNl4x9lnN+gXz/2wBDARUXFx4aHjshITt8U0ZTfHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHx8fHz/wAARCAANABUDAREAAhEBAxEB/8QAFgABAQEAAAAAAAAAAAAAAAAABAEC/8QAHxAAAgAFBQAAAAAAAAAAAAAAAAECAwQFIRETQWHh/8QAGQEAAgMBAAAAAAAAAAAAAAAAAAUBAgQG/8QAGhEBAQACAwAAAAAAAAAAAAAAAAEDBBESIf/dAAQAAv/aAAwDAQACEQMRAD8AtRdImtukhUiV0kn4YLTDFpyXtl9oBVvf/9AemBa6BhLLCqcv/9ESXIsPlJgr/9k=",
  ],
  [
    "gray",
    0x30a8de4b,
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABQODxIPDRQSEBIXFRQYHjIhHhwcHj0sLiQySUBMS0dARkVQWnNiUFVtVkVGZIhlbXd7gYKBTmCNl4x9lnN+gXz/wAALCAANABUBAREA/8QAFgABAQEAAAAAAAAAAAAAAAAAAgEE/8QAHxAAAgAFBQAAAAAAAAAAAAAAAAECAwQFIRETQWHh/9oACAEBAAA/ALUXSJrbpIVIldJJ+GAWmAJZYkuSn//Z",
  ],
  [
    "CMYK as Adobe writes it",
    0x34144ed8,
    "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAUDg8SDw0UEhASFxUUGB4yIR4cHB49LC4kMklATEtHQEZFUFpzYlBVbVZFRmSIZW13e4GCgU5gjZeMfZZzfoF8/8AAFAgADQAVBEMRAE0RAFkRAEsRAP/EABkAAAIDAQAAAAAAAAAAAAAAAAACAQMFBv/EACQQAAEEAQMEAwEAAAAAAAAAAAEAAhEhMQMEQQUTcYEGUWGh/9oADgRDAE0AWQBLAAA/ANlmnBl1lU775A9zez01g2u3ioaA7mcUM8XzKxN11l5b2tkwaGjFQADz9YyuzV4vysaDSyz+oTCxx7KmI4U5CFS3kKGts3/EprNoTtx6TRUowfCExqBlSEzJuChf/9k=",
  ],
];
const bytesOf = (base64: string): Uint8Array => new Uint8Array(Buffer.from(base64, "base64"));

test.each(pictures)("%s: the pixels are the reference's", (_, crc, base64) => {
  const { width, height, data } = decodeJpeg(bytesOf(base64));
  expect({ width, height, crc: Bun.hash.crc32(data) }).toEqual({ width: 21, height: 13, crc });
});

goldenTest("a photograph comes out as the reference decodes it", () => {
  const { data } = decodeJpeg(new Uint8Array(readFileSync(goldenPath("images/lines.jpg"))));
  expect(Buffer.compare(data, readFileSync(goldenPath("images/lines.rgb.u8")))).toBe(0);
});

test("whatever is cut off or changed is an error or a picture of its size", () => {
  for (const [, , base64] of pictures) {
    const whole = bytesOf(base64);
    for (let length = 2; length < whole.length - 2; length += 7) {
      expect(() => decodeJpeg(whole.subarray(0, length)), `${length} bytes`).toThrow();
    }
    for (let at = 2; at < whole.length; at += 3) {
      const changed = whole.slice();
      changed[at] = changed[at]! ^ 0x55;
      const result = ((): { width: number; height: number; data: Uint8Array } | undefined => {
        try {
          return sizeOf(changed) > 1e6 ? undefined : decodeJpeg(changed); // the header is looked at before
        } catch (error) {
          expect(error).toHaveProperty("code", "bad_request");
          return undefined;
        }
      })();
      if (result) expect(result.data.length).toBe(result.width * result.height * 3);
    }
  }
});

test("what is between segments is skipped", () => {
  for (const [, crc, base64] of pictures) {
    const whole = bytesOf(base64);
    const second = 4 + new DataView(whole.buffer).getUint16(4); // behind the first segment
    for (const padding of [[0], [0, 0, 0], [0xff, 0xff], [0x12, 0x34, 0xff]]) {
      const padded = Uint8Array.of(...whole.subarray(0, second), ...padding, ...whole.subarray(second));
      expect(readImageHeader(padded)).toMatchObject({ width: 21, height: 13 });
      expect(Bun.hash.crc32(decodeJpeg(padded).data)).toBe(crc);
    }
  }
});

function sizeOf(bytes: Uint8Array): number {
  const { width, height } = readImageHeader(bytes);
  return width * height;
}

test("a frame of another size than the header's, however it is hidden, is refused before memory is taken for it", () => {
  const whole = bytesOf(pictures[0]![2]);
  const frame = [0xff, 0xc0, 0, 17, 8, 0xff, 0xf0, 0xff, 0xf0, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1];
  const segment = [0xff, 0, 0, 2 + frame.length, ...frame]; // who reads 00 as a marker passes it by
  const hiding = Uint8Array.of(...whole.subarray(0, 2), ...segment, ...whole.subarray(2));
  expect(readImageHeader(hiding)).toMatchObject({ width: 21, height: 13 });
  expect(() => decodeJpeg(hiding)).toThrow("a frame of 65520×65520");
  expect(() => decodeJpeg(whole, { width: 20, height: 13 })).toThrow("a frame of 21×13");
});

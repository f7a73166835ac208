/** Reads the header of an image file, its format and size, before any allocation. */
import { AppError } from "../../base/index.ts";
import { isAnimated } from "./animation.ts";
import { sizeText, type ImageFormat, type Size } from "./image.ts";

/** The size of a full photograph from a good camera; decoders take 5 to 16 bytes per pixel. */
const PIXELS_MAX = 40_000_000;
const SIDE_MAX = 32_768;
const IMAGE_BYTES_MAX = 64 * 1024 * 1024;

export interface ImageHeader extends Size {
  readonly format: ImageFormat;
}

/**
 * Throws `bad_request` for an unknown format, an unreadable size or an animation, and `too_large` beyond our limits of
 * bytes or pixels.
 */
export function readImageHeader(bytes: Uint8Array): ImageHeader {
  if (bytes.length > IMAGE_BYTES_MAX) {
    throw new AppError("too_large", `image: expected at most ${IMAGE_BYTES_MAX} bytes, got ${bytes.length}`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const format = formatOf(bytes);
  const size = format && readers[format](view);
  if (!format) {
    const start = Array.from(bytes.subarray(0, 8), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const got = bytes.length === 0 ? "nothing" : `a file that begins with ${start}`;
    throw new AppError("bad_request", `image: expected PNG, JPEG, WebP or GIF, got ${got}`);
  }
  if (!size || size.width === 0 || size.height === 0) {
    const got = size ? sizeText(size) : "none: the file is damaged or cut off";
    throw new AppError("bad_request", `image: ${format}: expected a size, got ${got}`);
  }
  const { width, height } = size;
  if (width * height > PIXELS_MAX || Math.max(width, height) > SIDE_MAX) {
    const limit = `at most ${PIXELS_MAX / 1e6} megapixels and ${SIDE_MAX} to a side`;
    const got = `${sizeText(size)} (${((width * height) / 1e6).toFixed(1)} megapixels)`;
    throw new AppError("too_large", `image: ${format}: expected ${limit}, got ${got}`);
  }
  if (isAnimated(format, view)) {
    throw new AppError("bad_request", `image: ${format} of ${sizeText(size)}: expected one picture, got an animation`);
  }
  return { format, width, height };
}

const text = (bytes: Uint8Array, at: number, length: number): string =>
  String.fromCharCode(...bytes.subarray(at, at + length));

function formatOf(bytes: Uint8Array): ImageFormat | undefined {
  if (text(bytes, 0, 8) === "\x89PNG\r\n\x1a\n") return "PNG";
  if (text(bytes, 0, 3) === "\xff\xd8\xff") return "JPEG";
  if (text(bytes, 0, 4) === "RIFF" && text(bytes, 8, 4) === "WEBP") return "WebP";
  return /^GIF8[79]a$/.test(text(bytes, 0, 6)) ? "GIF" : undefined;
}

/** By format: the size of an image; undefined if the file ends before it. The first chunk of a PNG is its header. */
const readers: Readonly<Record<ImageFormat, (view: DataView) => Size | undefined>> = {
  PNG: (view) => (view.byteLength < 24 ? undefined : { width: view.getUint32(16), height: view.getUint32(20) }),
  GIF: (view) =>
    view.byteLength < 10 ? undefined : { width: view.getUint16(6, true), height: view.getUint16(8, true) },
  WebP: webpSize,
  JPEG: jpegSize,
};

/** By the first chunk: lossy, lossless or extended. (RFC 9649) */
function webpSize(view: DataView): Size | undefined {
  if (view.byteLength < 30) return undefined;
  const kind = text(new Uint8Array(view.buffer, view.byteOffset, view.byteLength), 12, 4);
  const three = (at: number): number => view.getUint16(at, true) + view.getUint8(at + 2) * 65_536;
  if (kind === "VP8X") return { width: three(24) + 1, height: three(27) + 1 };
  if (kind === "VP8 ") return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
  if (kind !== "VP8L") return undefined;
  const bits = view.getUint32(21, true);
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
}

/** From the frame header, after any other segments. (ITU-T T.81, B.2.2) */
function jpegSize(view: DataView): Size | undefined {
  let at = 2;
  while (at + 9 <= view.byteLength) {
    if (view.getUint8(at) !== 0xff) {
      at++; // skips bytes between segments, as the reference does
      continue;
    }
    const marker = view.getUint8(at + 1);
    const bare = marker === 0xff || marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    if (marker === 0xda || marker === 0xd9) return undefined; // pixels, or the end
    at += bare ? (marker === 0xff ? 1 : 2) : 2 + view.getUint16(at + 2);
  }
  return undefined;
}

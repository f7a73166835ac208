/**
 * Decodes image files in a page's Worker with the browser's own decoders; GIF by the server's reader. The pixels are
 * the server's, JPEG within rounding: alpha is dropped, profiles and orientation are ignored.
 */
import { AppError, messageOf } from "../../base/index.ts";
import {
  cleanJpeg,
  decodeGif,
  readImageHeader,
  type RgbImage,
  type Size,
  sizeText,
  withoutExtras,
} from "../../engine/media.ts";
import { type Bitmap, straightPixels } from "./straight-pixels.ts";

/** Globals of Workers that the library of types lacks here. */
declare const createImageBitmap: (
  image: Blob | Bitmap,
  ...how: [options: object] | [left: number, top: number, width: number, height: number, options: object]
) => Promise<Bitmap>;
declare const OffscreenCanvas: new (
  width: number,
  height: number,
) => {
  getContext(
    kind: "2d",
    options: { willReadFrequently: true },
  ): {
    drawImage(bitmap: Bitmap, x: number, y: number): void;
    clearRect(x: number, y: number, width: number, height: number): void;
    getImageData(x: number, y: number, width: number, height: number): { readonly data: Uint8ClampedArray };
  } | null;
};

/** Side of the squares that are read back: browsers refuse canvases of very many pixels. */
const TILE = 1024;
/** Neither premultiplied by alpha nor converted by a colour profile. */
const RAW = { premultiplyAlpha: "none", colorSpaceConversion: "none" };

/**
 * Throws `bad_request` for an invalid or damaged image, `too_large` beyond our limits, and `cancelled` by the signal.
 * The header's size is checked before the browser decodes anything.
 */
export async function decodeImage(bytes: Uint8Array, signal: AbortSignal): Promise<RgbImage> {
  const { format, width, height } = readImageHeader(bytes);
  const size = { width, height };
  try {
    if (format === "GIF") return decodeGif(bytes, size);
    const bitmap = await createImageBitmap(new Blob([cleaned(bytes, { format, size })]), RAW);
    try {
      if (bitmap.width !== width || bitmap.height !== height) {
        throw new Error(`expected ${sizeText(size)}, got ${sizeText(bitmap)}`);
      }
      if (signal.aborted) throw new AppError("cancelled", "image: cancelled by the caller");
      return { ...size, data: await pixelsOf(bitmap) };
    } finally {
      bitmap.close();
    }
  } catch (error) {
    if (error instanceof AppError && error.code !== "bad_request") throw error;
    const what = `image: ${format} of ${sizeText(size)}`;
    throw new AppError("bad_request", `${what}: damaged or cut off (${messageOf(error)})`, { cause: error });
  }
}

/** The parts of a file that its pixels need. */
function cleaned(
  bytes: Uint8Array,
  { format, size }: { format: "PNG" | "JPEG" | "WebP"; size: Size },
): Uint8Array<ArrayBuffer> {
  if (format === "JPEG") return cleanJpeg(bytes, size);
  return format === "PNG" ? withoutExtras(bytes) : new Uint8Array(bytes);
}

/** (height, width, 3) */
async function pixelsOf(bitmap: Bitmap): Promise<Uint8Array> {
  const { width, height } = bitmap;
  const out = new Uint8Array(width * height * 3);
  const canvas = new OffscreenCanvas(Math.min(TILE, width), Math.min(TILE, height));
  const plane = canvas.getContext("2d", { willReadFrequently: true });
  if (!plane) throw new AppError("unsupported", "this browser cannot draw images in a Worker");
  for (let top = 0; top < height; top += TILE) {
    for (let left = 0; left < width; left += TILE) {
      const size = { width: Math.min(TILE, width - left), height: Math.min(TILE, height - top) };
      plane.clearRect(0, 0, TILE, TILE);
      plane.drawImage(bitmap, -left, -top);
      const drawn = plane.getImageData(0, 0, size.width, size.height).data;
      const data = isOpaque(drawn) ? drawn : await straightTile(bitmap, { left, top, ...size });
      for (let y = 0; y < size.height; y++) {
        const row = data.subarray(4 * y * size.width, 4 * (y + 1) * size.width);
        putRow(row, out, 3 * ((top + y) * width + left));
      }
    }
  }
  return out;
}

function isOpaque(rgba: Uint8ClampedArray): boolean {
  for (let i = 3; i < rgba.length; i += 4) if (rgba[i] !== 255) return false;
  return true;
}

/** A canvas loses the colours of transparent pixels. */
async function straightTile(
  bitmap: Bitmap,
  { left, top, width, height }: Size & { left: number; top: number },
): Promise<Uint8Array> {
  const tile = await createImageBitmap(bitmap, left, top, width, height, RAW);
  try {
    return straightPixels(tile);
  } finally {
    tile.close();
  }
}

function putRow(rgba: Uint8Array | Uint8ClampedArray, out: Uint8Array, at: number): void {
  for (let i = 0, to = at; i < rgba.length; i += 4, to += 3) {
    out[to] = rgba[i]!;
    out[to + 1] = rgba[i + 1]!;
    out[to + 2] = rgba[i + 2]!;
  }
}

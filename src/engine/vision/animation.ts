/** Detects image files with several frames: a model sees only one, which the sender should know. */
import type { ImageFormat } from "./image.ts";

/** A truncated file counts as still if its existing part has one frame. */
export const isAnimated = (format: ImageFormat, view: DataView): boolean => readers[format](view);

const readers: Readonly<Record<ImageFormat, (view: DataView) => boolean>> = {
  JPEG: () => false,
  PNG: isAnimatedPng,
  WebP: (view) => view.byteLength > 20 && view.getUint32(12) === VP8X && (view.getUint8(20) & WEBP_ANIMATION) !== 0,
  GIF: isAnimatedGif,
};

/** Names of chunks, as big-endian numbers. */
const [VP8X, IDAT, ACTL] = [0x56503858, 0x49444154, 0x6163544c];
const WEBP_ANIMATION = 0x02; // RFC 9649, 2.7

/** A chunk before the pixels has the number of frames. (PNG third edition, 11.3.2) */
function isAnimatedPng(view: DataView): boolean {
  let at = 8;
  while (at + 12 <= view.byteLength) {
    const kind = view.getUint32(at + 4);
    if (kind === IDAT) return false;
    if (kind === ACTL) return view.getUint32(at + 8) > 1;
    at += 12 + view.getUint32(at);
  }
  return false;
}

const [EXTENSION, IMAGE] = [0x21, 0x2c];

/** Skips blocks up to a second image. (GIF89a, 15 to 27) */
function isAnimatedGif(view: DataView): boolean {
  const colours = (flags: number): number => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0);
  const has = (count: number): boolean => at + count <= view.byteLength;
  let at = 13;
  if (!has(0)) return false;
  at += colours(view.getUint8(10));
  for (let images = 0; has(10);) {
    const kind = view.getUint8(at);
    if (kind === IMAGE && ++images > 1) return true;
    if (kind === IMAGE)
      at += 11 + colours(view.getUint8(at + 9)); // plus the byte with the code size
    else if (kind === EXTENSION) at += 2;
    else return false;
    while (has(1) && view.getUint8(at) !== 0) at += 1 + view.getUint8(at);
    at++;
  }
  return false;
}

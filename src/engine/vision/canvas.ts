/**
 * Puts an image on a canvas of whole tiles, at the top left, with black around it: as large as fits, but enlarged only
 * to the side of a tile. Semantics: `MllamaImageProcessor` of transformers.
 */
import type { RgbImage, Size } from "./image.ts";
import { resize } from "./resize.ts";
import type { Steps } from "./steps.ts";

export interface CanvasRule {
  /** Side of a tile in pixels. */
  readonly tile: number;
  readonly tilesMax: number;
}

/** All canvases of up to `tilesMax` tiles, in tiles across and down: by height, then by width. */
export function canvasesOf(tilesMax: number): Size[] {
  return Array.from({ length: tilesMax }, (_, i) => i + 1).flatMap((height) =>
    Array.from({ length: Math.floor(tilesMax / height) }, (_, i) => ({ width: i + 1, height })),
  );
}

/**
 * The canvas that enlarges an image least, or else makes it least smaller, in tiles, and the image's size on it, in
 * pixels.
 */
function canvasOf(image: Size, { tile, tilesMax }: CanvasRule): { tiles: Size; inner: Size } {
  const canvases = canvasesOf(tilesMax).map((tiles) => {
    const scale = Math.min((tiles.width * tile) / image.width, (tiles.height * tile) / image.height);
    return { tiles, scale };
  });
  const enlarging = canvases.filter(({ scale }) => scale >= 1);
  const isBetter = (a: number, b: number): boolean => (enlarging.length > 0 ? a < b : a > b);
  const { tiles } = (enlarging.length > 0 ? enlarging : canvases).reduce(
    (best, each) => (isBetter(each.scale, best.scale) ? each : best), // the first of equals is the smallest
  );
  return { tiles, inner: innerSize(image, { width: tiles.width * tile, height: tiles.height * tile }, tile) };
}

function innerSize({ width, height }: Size, canvas: Size, tile: number): Size {
  const across = Math.min(Math.max(width, tile), canvas.width);
  const down = Math.min(Math.max(height, tile), canvas.height);
  const scaled = (side: number, by: number, most: number): number => Math.min(Math.floor(side * by) || 1, most);
  return across / width < down / height
    ? { width: across, height: scaled(height, across / width, down) }
    : { width: scaled(width, down / height, across), height: down };
}

export function* onCanvas(image: RgbImage, rule: CanvasRule): Steps<RgbImage> {
  const { tiles, inner } = canvasOf(image, rule);
  const scaled = yield* resize(image, inner, "bilinear");
  const [width, height] = [tiles.width * rule.tile, tiles.height * rule.tile];
  const data = new Uint8Array(width * height * 3);
  for (let y = 0; y < inner.height; y++) {
    data.set(scaled.data.subarray(y * inner.width * 3, (y + 1) * inner.width * 3), y * width * 3);
  }
  return { width, height, data };
}

/** Cuts an image into tiles of a fixed size. */
import { sizeText, type RgbImage, type Size } from "./image.ts";
import { fitInto } from "./prepare.ts";
import type { Tiling } from "./projector.ts";
import { resize } from "./resize.ts";

const BLACK = [0, 0, 0] as const;

/** The tiles of an image whose size is a multiple of the tile's, line by line. */
export function tilesOf({ width, height, data }: RgbImage, tile: Size): RgbImage[] {
  const tiles: RgbImage[] = [];
  const line = tile.width * 3;
  for (let top = 0; top + tile.height <= height; top += tile.height) {
    for (let left = 0; left + tile.width <= width; left += tile.width) {
      const out = new Uint8Array(tile.height * line);
      for (let y = 0; y < tile.height; y++) {
        const from = ((top + y) * width + left) * 3;
        out.set(data.subarray(from, from + line), y * line);
      }
      tiles.push({ ...tile, data: out });
    }
  }
  return tiles;
}

/**
 * Tiles of an image. The whole image, stretched to a tile, is first, as in training (llama.cpp puts it last). An image
 * larger than a tile is followed by tiles of it at the best of several sizes, with black padding.
 * (`mtmd_image_preprocessor_llava_uhd` of llama.cpp, with pinpoints; `process_anyres_image` of LLaVA)
 */
export function bestOfSizes(sizes: readonly Size[], tile: number): Tiling {
  const sizeOf = (size: Size): Size | undefined =>
    size.width > tile || size.height > tile ? bestSize(size, sizes) : undefined;
  return {
    partsOf(size) {
      const { width, height } = sizeOf(size) ?? { width: 0, height: 0 };
      return Array.from({ length: 1 + (width / tile) * (height / tile) }, () => "picture");
    },
    *picturesOf(image) {
      const square = { width: tile, height: tile };
      const whole = yield* resize(image, square, "bicubic");
      const best = sizeOf(image);
      if (!best) return [whole];
      return [whole, ...tilesOf(yield* fitInto(image, best, { filter: "bicubic", pad: BLACK }), square)];
    },
  };
}

/** The size that keeps most of an image's pixels; among equals, the one with the least padding. */
function bestSize(image: Size, sizes: readonly Size[]): Size {
  const f32 = Math.fround;
  const shown = (size: Size): number => {
    const scale = Math.min(f32(size.width / image.width), f32(size.height / image.height));
    const [width, height] = [Math.trunc(f32(image.width * scale)), Math.trunc(f32(image.height * scale))];
    return Math.min(width * height, image.width * image.height);
  };
  return sizes.reduce((best, size) => {
    const [now, before] = [shown(size), shown(best)];
    const isLess = now === before && size.width * size.height < best.width * best.height;
    return now > before || isLess ? size : best;
  });
}

/** Sizes from a list of widths and heights; undefined if one is not a multiple of the tile, or too large. */
export function readSizes(list: readonly number[], { tile, most }: { tile: number; most: number }): Size[] | string {
  const sizes = Array.from({ length: Math.floor(list.length / 2) }, (_, i) => {
    return { width: list[2 * i]!, height: list[2 * i + 1]! };
  });
  const isWhole = (side: number): boolean => Number.isInteger(side / tile) && side > 0;
  const bad = sizes.find(
    ({ width, height }) => !isWhole(width) || !isWhole(height) || width * height > most * tile ** 2,
  );
  return bad ? sizeText(bad) : sizes;
}

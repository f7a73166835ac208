/** Pictures in tiles: the chosen sizes, and their content. The counts are llama-server's. */
import { expect, test } from "bun:test";
import type { RgbImage } from "../../../src/engine/vision/image.ts";
import { runAtOnce } from "../../../src/engine/vision/steps.ts";
import { bestOfSizes, readSizes, tilesOf } from "../../../src/engine/vision/tiles.ts";

const TILE = 84;
const SIZES = [84, 168, 168, 84, 168, 168, 252, 84, 84, 252];

function tiling() {
  const sizes = readSizes(SIZES, { tile: TILE, most: 64 });
  if (typeof sizes === "string") throw new Error(sizes);
  return bestOfSizes(sizes, TILE);
}

/** Each pixel encodes its position. */
function picture(width: number, height: number): RgbImage {
  const data = Uint8Array.from({ length: width * height * 3 }, (_, i) => {
    const pixel = Math.floor(i / 3);
    return i % 3 === 0 ? pixel % width : i % 3 === 1 ? Math.floor(pixel / width) : 200;
  });
  return { width, height, data };
}

test("a picture is the whole, then the tiles of the size that shows most of it", () => {
  const counts = [
    [97, 61, 2],
    [64, 128, 2],
    [200, 40, 3],
    [240, 150, 4],
    [480, 360, 4],
    [84, 84, 0],
    [20, 30, 0],
  ] as const;
  for (const [width, height, tiles] of counts) {
    const size = `${width}×${height}`;
    expect(tiling().partsOf({ width, height }), size).toHaveLength(1 + tiles);
    const pictures = runAtOnce(tiling().picturesOf(picture(width, height)));
    expect(pictures, size).toHaveLength(1 + tiles);
    for (const each of pictures) expect([each.width, each.height, each.data.length]).toEqual([84, 84, 84 * 84 * 3]);
  }
});

test("tiles are squares of the picture in rows", () => {
  const tiles = tilesOf(picture(6, 4), { width: 2, height: 2 });
  expect(tiles.map(({ data }) => [data[0], data[1]])).toEqual([
    [0, 0],
    [2, 0],
    [4, 0],
    [0, 2],
    [2, 2],
    [4, 2],
  ]);
  expect([...tiles[4]!.data]).toEqual([2, 2, 200, 3, 2, 200, 2, 3, 200, 3, 3, 200]);
});

test("a picture of other proportions has black borders", () => {
  const pictures = runAtOnce(tiling().picturesOf(picture(200, 50))); // 252×84, of which 63 lines are the picture
  const [, first, second] = pictures;
  expect([...first!.data.subarray(0, 3)]).toEqual([0, 0, 0]);
  expect([...second!.data.subarray((42 * 84 + 42) * 3, (42 * 84 + 42) * 3 + 3)][2]).toBe(200);
});

test("an error names a size that is not a multiple of the tile or has too many", () => {
  expect(readSizes([84, 168, 100, 84], { tile: TILE, most: 64 })).toBe("100×84");
  expect(readSizes([84, 84 * 65], { tile: TILE, most: 64 })).toBe("84×5460");
  expect(readSizes([84, 0], { tile: TILE, most: 64 })).toBe("84×0");
});

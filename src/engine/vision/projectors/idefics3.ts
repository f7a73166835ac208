/**
 * Idefics 3 and SmolVLM: SigLIP over tiles of an image, line by line, and over the whole image at a tile's size;
 * squares of rows are merged. Semantics: `mtmd_image_preprocessor_idefics3` and models/siglip.cpp of llama.cpp's
 * tools/mtmd.
 */
import { AppError } from "../../../base/index.ts";
import { widthOf, type ClipModel } from "../clip.ts";
import { squares } from "../grid.ts";
import type { Size } from "../image.ts";
import type { Projector, TilePart, Tiling } from "../projector.ts";
import { resize } from "../resize.ts";
import { tilesOf } from "../tiles.ts";
import { project } from "../tower.ts";
import { fixedGrid, siglip } from "./learned-positions.ts";

const SIDE_MAX = 16;
/** Maximum pixels of the longer side of a tiled image; published models have 2048. */
const LONGEST_MAX = 8192;
const AROUND = "<fake_token_around_image>";

export function idefics3(model: ClipModel): Projector {
  const { dim, keys, imageSize, path } = model;
  const side = keys.count("vision.projector.scale_factor", { min: 1, max: SIDE_MAX, fallback: 1 });
  const grid = fixedGrid(model);
  if (grid.width % side !== 0) {
    const expected = `a divisor of the ${grid.width} patches to a side`;
    throw new AppError("bad_file", `${path}: 'clip.vision.projector.scale_factor': expected ${expected}, got ${side}`);
  }
  const longest = keys.count("vision.preproc_image_size", { min: imageSize, max: LONGEST_MAX });
  const merged = { name: "merged", dim: dim * side * side };
  const projected = { name: "projected", dim: widthOf(model, "mm.model.fc") };
  return {
    before: "",
    after: "",
    ...siglip(model, grid),
    filter: "lanczos",
    tiling: tilingOf({ longest, tile: imageSize }),
    merge: (rows, size) => squares(rows, size, { side, byChannel: false }),
    projection: {
      steps: [{ op: "input", out: merged }, ...project(model, "mm.model.fc", { out: projected, x: merged })],
      result: projected,
    },
    shapeOf: ({ width, height }) => ({ width: width / side, height: height / side }),
  };
}

interface Tiles {
  /** Pixels of the longer side of an image, before it is extended to whole tiles. */
  readonly longest: number;
  readonly tile: number;
}

function tilingOf(tiles: Tiles): Tiling {
  const { tile } = tiles;
  return {
    partsOf(size) {
      const { whole } = sizesOf(size, tiles);
      const [across, down] = [whole.width / tile, whole.height / tile];
      const parts: TilePart[] = [];
      for (let row = 1; row <= down; row++) {
        for (let column = 1; column <= across; column++) {
          parts.push({ marker: AROUND }, { marker: `<row_${row}_col_${column}>` }, "picture");
        }
        if (row < down) parts.push({ marker: "\n" });
      }
      return [
        ...parts,
        { marker: "\n\n" },
        { marker: AROUND },
        { marker: "<global-img>" },
        "picture",
        { marker: AROUND },
      ];
    },
    *picturesOf(image) {
      const { scaled, whole } = sizesOf(image, tiles);
      const picture = yield* resize(yield* resize(image, scaled, "lanczos"), whole, "lanczos");
      const square = { width: tile, height: tile };
      return [...tilesOf(picture, square), yield* resize(picture, square, "lanczos")];
    },
  };
}

/** The sizes of an image scaled so that its longer side has the given length, and then to whole tiles. */
function sizesOf({ width, height }: Size, { longest, tile }: Tiles): { scaled: Size; whole: Size } {
  const aspect = Math.fround(width / height);
  const even = (side: number): number => Math.max(2, Math.trunc(side) + (Math.trunc(side) % 2));
  const scaled =
    width >= height
      ? { width: longest, height: even(Math.fround(longest / aspect)) }
      : { width: even(Math.fround(longest * aspect)), height: longest };
  const fill = (pixels: number): number => Math.ceil(pixels / tile) * tile;
  return { scaled, whole: { width: fill(scaled.width), height: fill(scaled.height) } };
}

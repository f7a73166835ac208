/**
 * Slices an image like MiniCPM-V: the whole image at about the area of one slice, then a grid of slices of that area
 * with proportions near the image's. Semantics: `mtmd_image_preprocessor_llava_uhd` of llama.cpp, without pinpoints.
 */
import { AppError } from "../../base/index.ts";
import { sizeText, type RgbImage, type Size } from "./image.ts";
import { fitInto } from "./prepare.ts";
import { resize } from "./resize.ts";
import type { Steps } from "./steps.ts";
import { tilesOf } from "./tiles.ts";

const f32 = Math.fround;
const SLICES_MAX = 9;
const BLACK = [0, 0, 0] as const;

export interface SliceRule {
  /** Side of a square with the area of a slice. */
  readonly side: number;
  readonly patch: number;
  /** Maximum patches of a slice; very long and narrow slices have more. */
  readonly patchesMax: number;
}

/** The sizes of an image's slices. */
interface Cut {
  readonly whole: Size;
  /** Slices across and down; zero for a small image. */
  readonly grid: Size;
  readonly slice: Size;
}

/** Throws `bad_request` if a slice would have too many patches. */
export function cutOf(size: Size, rule: SliceRule): Cut {
  const cut = size.width > rule.side || size.height > rule.side ? largeCut(size, rule) : smallCut(rule);
  for (const { width, height } of [cut.whole, cut.slice]) {
    const patches = (width / rule.patch) * (height / rule.patch);
    if (patches <= rule.patchesMax) continue;
    const limit = `expected at most ${rule.patchesMax} patches, got ${patches}`;
    throw new AppError("bad_request", `image of ${sizeText(size)}: ${limit}: it is too narrow`);
  }
  return cut;
}

/** The whole image, and its slices line by line. */
export function* slicesOf(image: RgbImage, rule: SliceRule): Steps<RgbImage[]> {
  const { whole, grid, slice } = cutOf(image, rule);
  const overview = yield* resize(image, whole, "bicubic");
  if (grid.width * grid.height === 0) return [overview];
  const refined = { width: slice.width * grid.width, height: slice.height * grid.height };
  return [overview, ...tilesOf(yield* fitInto(image, refined, { filter: "bicubic", pad: BLACK }), slice)];
}

function smallCut({ side }: SliceRule): Cut {
  const none = { width: 0, height: 0 };
  return { whole: { width: side, height: side }, grid: none, slice: none };
}

function largeCut(size: Size, { side, patch }: SliceRule): Cut {
  const area = f32(f32(size.width * size.height) / (side * side));
  const grid = gridOf(size, Math.min(Math.ceil(area), SLICES_MAX));
  const part = {
    width: nearest(size.width, grid.width) / grid.width,
    height: nearest(size.height, grid.height) / grid.height,
  };
  return {
    whole: inPatches(size.width * size.height > side * side ? ofArea(size, side) : size, patch),
    grid,
    slice: inPatches(ofArea(part, side), patch),
  };
}

/** A size with these proportions and the area of a square of that side, truncated in float32 as in the reference. */
function ofArea({ width, height }: Size, side: number): Size {
  const ratio = f32(width / height);
  const down = Math.trunc(f32(side / f32(Math.sqrt(ratio))));
  return { width: Math.trunc(f32(down * ratio)), height: down };
}

/** The nearest multiple of `step`, at least one `step`. */
const nearest = (length: number, step: number): number => Math.max(Math.floor(f32(length / step) + 0.5) * step, step);

const inPatches = ({ width, height }: Size, patch: number): Size => ({
  width: nearest(width, patch),
  height: nearest(height, patch),
});

/** The grid of about `count` slices with proportions nearest to the image's. */
function gridOf({ width, height }: Size, count: number): Size {
  const wanted = f32(Math.log(f32(width / height)));
  let best: Size = { width: 1, height: 1 };
  let least = Infinity;
  for (const slices of [count - 1, count, count + 1]) {
    if (slices === 1 || slices > SLICES_MAX) continue;
    for (let across = 1; across <= slices; across++) {
      if (slices % across !== 0) continue;
      const grid = { width: across, height: slices / across };
      const error = f32(Math.abs(wanted - Math.log(grid.width / grid.height)));
      if (error < least) [best, least] = [grid, error];
    }
  }
  return best;
}

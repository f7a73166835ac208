/**
 * Prepares an image for an encoder: resizing, padding, colour normalization as in training, and patches as rows.
 * Semantics: `mtmd_image_preprocessor` and `img_tool` of llama.cpp (tools/mtmd).
 */
import type { Rgb, RgbImage, Size } from "./image.ts";
import { resize, type FilterName } from "./resize.ts";
import type { Steps } from "./steps.ts";

const f32 = Math.fround;

/** The size of pictures: fixed, or the image's own size, in steps and within limits. */
export type SizeRule =
  | { readonly kind: "fixed"; readonly side: number }
  /** Whole multiples of `step`, with `min` … `max` squares of that side. */
  | { readonly kind: "dynamic"; readonly step: number; readonly min: number; readonly max: number };

/** The target size of an image. All in float32, as in the reference. */
export function targetSize({ width, height }: Size, rule: SizeRule): Size {
  if (rule.kind === "fixed") return { width: rule.side, height: rule.side };
  const { step } = rule;
  const area = f32(width * height);
  const [least, most] = [rule.min * step * step, rule.max * step * step];
  const nearest = (side: number): number => Math.max(step, Math.floor(f32(side / step) + 0.5) * step);
  const near = { width: nearest(width), height: nearest(height) };
  const size = near.width * near.height;
  if (size > most) {
    const by = f32(Math.sqrt(f32(area / most)));
    const below = (side: number): number => Math.max(step, Math.floor(f32(f32(side / by) / step)) * step);
    return { width: below(width), height: below(height) };
  }
  if (size >= least) return near;
  const by = f32(Math.sqrt(f32(least / area)));
  const above = (side: number): number => Math.ceil(f32(f32(side * by) / step)) * step;
  return { width: above(width), height: above(height) };
}

/** The image fitted into other proportions: as large as fits, centred, with `pad` around it. */
export function* fitInto(
  image: RgbImage,
  size: Size,
  { filter, pad }: { filter: FilterName; pad: Rgb },
): Steps<RgbImage> {
  const { width, height } = size;
  if (image.width === width && image.height === height) return image;
  const scale = Math.min(f32(width / image.width), f32(height / image.height));
  const inner = {
    width: Math.min(Math.ceil(f32(image.width * scale)), width),
    height: Math.min(Math.ceil(f32(image.height * scale)), height),
  };
  const scaled = yield* resize(image, inner, filter);
  const data = new Uint8Array(width * height * 3);
  if (pad.some((value) => value !== 0)) for (let i = 0; i < data.length; i++) data[i] = pad[i % 3]!;
  const left = (width - inner.width) >> 1;
  const top = (height - inner.height) >> 1;
  for (let y = 0; y < inner.height; y++) {
    const row = scaled.data.subarray(y * inner.width * 3, (y + 1) * inner.width * 3);
    data.set(row, ((top + y) * width + left) * 3);
  }
  return { width, height, data };
}

/** Colour normalization of the training. */
export interface Colours {
  readonly mean: Rgb;
  readonly std: Rgb;
}

/** The input of an encoder: planes of red, green and blue, (3, height, width). */
export interface Pixels extends Size {
  readonly values: Float32Array;
}

/** (value / 255 − mean) / std, in float32 and in this order. */
export function toPixels({ width, height, data }: RgbImage, { mean, std }: Colours): Pixels {
  const plane = width * height;
  const values = new Float32Array(3 * plane);
  for (let channel = 0; channel < 3; channel++) {
    const [from, by] = [f32(mean[channel]!), f32(std[channel]!)];
    const known = Float32Array.from({ length: 256 }, (_, value) => f32(f32(f32(value / 255) - from) / by));
    for (let i = 0; i < plane; i++) values[channel * plane + i] = known[data[3 * i + channel]!]!;
  }
  return { width, height, values };
}

/**
 * Squares of `patch` pixels as rows: (patches, 3 · patch²), channel by channel, each line by line; the patches are in
 * line order, too.
 * @param into destination of the rows, `stride` values apart
 */
export function patchRows(
  { width, height, values }: Pixels,
  patch: number,
  { into, stride, order }: { into: Float32Array; stride: number; order?: Int32Array | undefined },
): void {
  const grid = { width: width / patch, height: height / patch };
  for (let row = 0; row < into.length / stride; row++) {
    const index = order ? order[row]! : row;
    if (index < 0) continue; // no patch: zeros
    const left = (index % grid.width) * patch;
    const top = Math.floor(index / grid.width) * patch;
    let at = row * stride;
    for (let channel = 0; channel < 3; channel++) {
      for (let y = 0; y < patch; y++, at += patch) {
        const from = (channel * height + top + y) * width + left;
        for (let x = 0; x < patch; x++) into[at + x] = values[from + x]!;
      }
    }
  }
}

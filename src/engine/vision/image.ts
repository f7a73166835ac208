/** A decoded picture, and its sizes. */
import { AppError } from "../../base/index.ts";

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** 8 bits of red, green and blue for each pixel: (height, width, 3). */
export interface RgbImage extends Size {
  readonly data: Uint8Array;
}

export type Rgb = readonly [number, number, number];

export const sizeText = ({ width, height }: Size): string => `${width}×${height}`;

export type ImageFormat = "PNG" | "JPEG" | "WebP" | "GIF";

/** @param what is wrong with a file */
export const broken = (what: string): AppError => new AppError("bad_request", what);

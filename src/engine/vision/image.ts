/** A decoded image, and image sizes. */
import { AppError } from "../../base/index.ts";

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** 8 bits each of red, green and blue per pixel: (height, width, 3). */
export interface RgbImage extends Size {
  readonly data: Uint8Array;
}

export type Rgb = readonly [number, number, number];

export const sizeText = ({ width, height }: Size): string => `${width}×${height}`;

export type ImageFormat = "PNG" | "JPEG" | "WebP" | "GIF";

/** @param what describes the problem of a file */
export const broken = (what: string): AppError => new AppError("bad_request", what);

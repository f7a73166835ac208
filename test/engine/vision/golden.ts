/** The reference data of image encoders: llama.cpp's results for some pictures, stage by stage. */
import { readFileSync } from "node:fs";
import { golden } from "../../golden.ts";
import type { RgbImage } from "../../../src/engine/vision/image.ts";

export interface GoldenChunk {
  readonly type: "text" | "image";
  readonly tokens?: readonly number[];
  readonly n_tokens?: number;
  readonly non_causal?: boolean;
  readonly pos?: readonly number[];
  readonly pos_sections?: Readonly<Record<"t" | "y" | "x", readonly number[]>>;
}

export interface GoldenImage {
  readonly file: string;
  readonly rgb: { readonly file: string; readonly shape_hwc: readonly [number, number, number] };
  readonly pixels: { readonly file: string };
  readonly embd: { readonly file: string };
  /** Without llama.cpp's roundings. */
  readonly exact?: { readonly file: string };
  /** LLaVA as it was trained: see the README of the data. */
  readonly fixed?: { readonly file: string };
  readonly logits: { readonly file: string };
  readonly chunks: readonly GoldenChunk[];
}

export interface GoldenProjector {
  readonly projector: string;
  readonly mmproj: string;
  readonly text: string;
  readonly prompt: string;
  readonly images: Readonly<Record<string, GoldenImage>>;
}

const path = (name: string): string => golden(`vision/${name}`);

export const readProjector = (name: string): GoldenProjector =>
  JSON.parse(readFileSync(path(`${name}.json`), "utf8")) as GoldenProjector;

export const readFloats = (name: string): Float32Array => {
  const bytes = new Uint8Array(readFileSync(path(name)));
  return new Float32Array(bytes.buffer);
};

export function readPicture({ rgb }: GoldenImage): RgbImage {
  const [height, width] = rgb.shape_hwc;
  return { width, height, data: new Uint8Array(readFileSync(path(rgb.file))) };
}

export const goldenPath = path;

/**
 * The interface of a projector kind: the preparation of an image, the steps for its patches, and their rows in a
 * prompt. An encoder is two programs, the tower over patches and the projection to the text model's width, because rows
 * are merged between them.
 */
import type { Rows, Span } from "../program/backend.ts";
import type { Buf, Step } from "../program/step.ts";
import type { Rgb, RgbImage, Size } from "./image.ts";
import type { SizeRule } from "./prepare.ts";
import type { FilterName } from "./resize.ts";
import type { Steps } from "./steps.ts";

/** Patches across and down. */
export type Grid = Size;

/** The text of a control token, or one of the pictures that an image is cut into. */
export type TilePart = { readonly marker: string } | "picture";

/** Cuts an image into several pictures of the projector's size. */
export interface Tiling {
  /** The parts of a prompt for an image of that size, in order. */
  partsOf(size: Size): readonly TilePart[];
  /** Its pictures in that order. */
  picturesOf(image: RgbImage): Steps<readonly RgbImage[]>;
}

/** A program that begins with an `input`. */
export interface Part {
  readonly steps: readonly Step[];
  readonly result: Buf;
}

/** The input of the tower besides the pixels. */
export interface TowerRows extends Pick<Rows, "spans"> {
  readonly count: number;
  /** The patch of each row, −1 for none; omitted: patches line by line. */
  readonly order?: Int32Array;
  /** Additional input values of each row after its pixels: (count, values). */
  readonly added?: Float32Array;
  /** (count, 3) */
  readonly positions?: Int32Array;
}

export interface Projector {
  /** Texts of the control tokens around an image; "" for none. */
  readonly before: string;
  readonly after: string;
  /** Maximum rows of a picture, if they attend to each other in both directions; default 0: they do not. */
  readonly twoWayRows?: number;
  /** Its rows are a memory for cross attention; the prompt has one token for them. */
  readonly isMemory?: true;
  readonly size: SizeRule;
  readonly filter: FilterName;
  /** Omitted: an image is one picture. */
  readonly tiling?: Tiling;
  readonly pad: Rgb;
  /** Side of a patch in pixels. */
  readonly patch: number;
  /** Pixel values are 2x − 1 instead of x; default false. */
  readonly isSigned?: boolean;
  readonly tower: Part;
  /** Maximum rows of the tower. */
  readonly rowsMax: number;
  rowsOf(grid: Grid): TowerRows;
  /** Converts the tower's rows to the projection's. */
  merge(states: Float32Array, grid: Grid): Float32Array;
  readonly projection?: Part;
  /** Spans of the projection's rows, if it has attention. */
  spansOf?(grid: Grid): readonly Span[];
  /** Converts the projection's rows to the prompt's. */
  finish?(rows: Float32Array, grid: Grid): Float32Array;
  /** Rows of the prompt per line, and lines. */
  shapeOf(grid: Grid): Size;
  /** The number of rows; omitted: the area of the shape. */
  count?(grid: Grid): number;
}

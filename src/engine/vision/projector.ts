/**
 * What a kind of projector is: how a picture is prepared, the steps that its patches pass, and what becomes of them in
 * a prompt. An encoder is two programs, the tower over patches and the projection to the text model's width, since rows
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

/** How an image becomes several pictures of the projector's size. */
export interface Tiling {
  /** What stands in a prompt for an image of that size, in order. */
  partsOf(size: Size): readonly TilePart[];
  /** Its pictures in that order. */
  picturesOf(image: RgbImage): Steps<readonly RgbImage[]>;
}

/** A program that begins with an `input`. */
export interface Part {
  readonly steps: readonly Step[];
  readonly result: Buf;
}

/** What the tower reads of a picture beside its pixels. */
export interface TowerRows extends Pick<Rows, "spans"> {
  readonly count: number;
  /** Which patch each row is, −1 for none; left out: patches line by line. */
  readonly order?: Int32Array;
  /** Goes behind the pixels of each row: (count, what the tower's input has room for). */
  readonly added?: Float32Array;
  /** (count, 3) */
  readonly positions?: Int32Array;
}

export interface Projector {
  /** Texts of the control tokens around an image; "" for none. */
  readonly before: string;
  readonly after: string;
  /** Whether the rows of an image see each other both ways. */
  readonly isTwoWay: boolean;
  readonly size: SizeRule;
  readonly filter: FilterName;
  /** Left out: an image is one picture. */
  readonly tiling?: Tiling;
  readonly pad: Rgb;
  /** Side of a patch in pixels. */
  readonly patch: number;
  /** Patches read 2x − 1 instead of x; false. */
  readonly isSigned?: boolean;
  readonly tower: Part;
  /** Most rows that the tower reads. */
  readonly rowsMax: number;
  rowsOf(grid: Grid): TowerRows;
  /** From the tower's rows to those of the projection. */
  merge(states: Float32Array, grid: Grid): Float32Array;
  readonly projection?: Part;
  /** Of the projection's rows, where it has attention. */
  spansOf?(grid: Grid): readonly Span[];
  /** From the projection's rows to those of the prompt. */
  finish?(rows: Float32Array, grid: Grid): Float32Array;
  /** Rows of the prompt across and down. */
  shapeOf(grid: Grid): Size;
  /** How many there are; left out: as many as the shape has. */
  count?(grid: Grid): number;
}

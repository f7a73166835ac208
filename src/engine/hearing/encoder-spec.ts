/**
 * The interface of an audio encoder: pieces of a recording, the stages that turn each into rows of a prompt, and their
 * number. A stage is a program; between two programs rows are gathered for convolutions, pooled or stacked.
 */
import type { WeightSource } from "../program/backend.ts";
import type { Part } from "../vision/projector.ts";
import type { Steps } from "../vision/steps.ts";

/** Values on a grid: (batches, time, bins, channels). */
export interface Sheet {
  readonly values: Float32Array;
  readonly batches: number;
  readonly time: number;
  readonly bins: number;
  readonly channels: number;
}

/** The input of a stage's program, made a block of rows at a time. */
export interface StageInput {
  /** Rows as a grid, in the order of a sheet. */
  readonly batches: number;
  readonly time: number;
  readonly bins: number;
  /** Rows `first` to `first + count`, (count, dim) */
  fill(first: number, count: number): Float32Array;
  /** The position for RoPE of a row; omitted: its index. */
  positionOf?(row: number): number;
}

export interface Stage {
  readonly part: Part;
  /** Maximum rows of a run. */
  readonly rowsMax: number;
  /** True if rows do not depend on each other, so that more rows than `rowsMax` can be divided into several runs. */
  readonly isRowwise: boolean;
  inputOf(sheet: Sheet): StageInput;
}

export interface AudioEncoderSpec {
  /** Texts of the control tokens around a recording; "" for none. */
  readonly before: string;
  readonly after: string;
  /** The numbers of rows of a recording's pieces. */
  rowsOf(samples: number): readonly number[];
  /** The pieces of a recording at 16 kHz. */
  listen(samples: Float32Array): Steps<readonly Sheet[]>;
  readonly stages: readonly Stage[];
  /** The file's weights and weights made of them; omitted: the file's. */
  readonly weights?: WeightSource;
}

/** The rows of a sheet, unchanged. */
export const asRows = ({ values, batches, time, bins, channels }: Sheet): StageInput => ({
  batches,
  time,
  bins,
  fill: (first, count) => values.subarray(first * channels, (first + count) * channels),
});

/** Models that answer by filling in masks. */

/** Traits of a model that answers by filling in masks. */
export interface DiffusionTraits {
  /** The token of a position that is not known yet. */
  readonly mask: number;
  /** The logits for position i are in row i − 1. */
  readonly shifts: boolean;
  /** The model was trained to fill in one block of the answer after the other. */
  readonly blocks: boolean;
}

/** Their architectures: they fill in block by block, or the whole answer at once, as they were trained. */
export const DIFFUSION_ARCHS: ReadonlyMap<string, "blocks" | "whole"> = new Map([
  ["dream", "whole"],
  ["llada", "blocks"],
  ["llada-moe", "blocks"],
  ["rnd1", "whole"],
]);

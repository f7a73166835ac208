/**
 * What a device may be asked for instead of all logits of a row: its likeliest tokens, and those whose logits penalties
 * will change. The rest of a vocabulary need not leave it then.
 */

/** The most that a device gives for a row. */
export interface OfferLimits {
  readonly k: number;
  readonly apart: number;
}

export interface OfferWish {
  /** How many of the likeliest tokens, those set apart not counted; at least 1. */
  readonly k: number;
  /** Distinct ids that are offered whatever their logits. Good until the sampler is asked again. */
  readonly apart: Int32Array;
}

/** Tokens in any order, each once: what was wished for, or the whole vocabulary where that is smaller. */
export interface Offer {
  readonly ids: Int32Array;
  /** (ids) logits as the model gave them. The sampler changes them. */
  readonly logits: Float32Array;
}

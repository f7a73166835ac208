/**
 * Top-k candidates selected on the device: a row's likeliest tokens, and the tokens whose logits penalties will change.
 * The other logits need not be copied from the device.
 */

/** The device's limits per row. */
export interface TopKLimits {
  readonly k: number;
  readonly masked: number;
}

export interface TopKRequest {
  /** Number of likeliest tokens, not counting the masked ones; at least 1. */
  readonly k: number;
  /** Distinct ids that the search leaves out: they are read in any case. Valid until the sampler is called again. */
  readonly masked: Int32Array;
}

/** Tokens in any order, without duplicates: the requested candidates, or the whole vocabulary if that is smaller. */
export interface TopK {
  readonly ids: Int32Array;
  /** (ids) raw logits of the model. The sampler changes them. */
  readonly logits: Float32Array;
}

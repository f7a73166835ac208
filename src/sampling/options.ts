/**
 * Generation options: names, types and defaults as clients send them under `options`. Sampling options change per request;
 * load options belong to a loaded model, and a change of one reloads it. (Defaults: the seed gives none; these are the field's.)
 */

/** Sampling options, complete. Order of use: penalties, top-k, tail-free, typical-p, top-p, min-p, temperature, draw. */
export interface SamplingOptions {
  /** −1: a random seed. */
  readonly seed: number;
  /** Tokens to generate; −1: until the model stops, −2: until the context is full. */
  readonly num_predict: number;
  /** Prompt tokens kept on a context shift; −1: all. */
  readonly num_keep: number;
  /** 0: argmax. */
  readonly temperature: number;
  /** 0: off. */
  readonly top_k: number;
  readonly top_p: number;
  readonly min_p: number;
  /** 1: off. */
  readonly tfs_z: number;
  /** 1: off. */
  readonly typical_p: number;
  /** Tokens that penalties look back on; 0: off, −1: the whole context. */
  readonly repeat_last_n: number;
  readonly repeat_penalty: number;
  readonly presence_penalty: number;
  readonly frequency_penalty: number;
  /** Whether the newline token takes penalties too. */
  readonly penalize_newline: boolean;
  /** 0: off, 1: mirostat, 2: mirostat 2.0. */
  readonly mirostat: 0 | 1 | 2;
  readonly mirostat_tau: number;
  readonly mirostat_eta: number;
  readonly stop: readonly string[];
}

export const SAMPLING_DEFAULTS: SamplingOptions = {
  seed: -1,
  num_predict: -1,
  num_keep: 4,
  temperature: 0.8,
  top_k: 40,
  top_p: 0.9,
  min_p: 0,
  tfs_z: 1,
  typical_p: 1,
  repeat_last_n: 64,
  repeat_penalty: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  penalize_newline: true,
  mirostat: 0,
  mirostat_tau: 5,
  mirostat_eta: 0.1,
  stop: [],
};

/** Options that take effect when a model is loaded. `undefined`: the server's choice. */
export interface LoadingOptions {
  readonly num_ctx?: number;
  readonly num_batch?: number;
  readonly num_gpu?: number;
  readonly main_gpu?: number;
  readonly num_thread?: number;
  readonly use_mmap?: boolean;
}

/** What a request or a model's parameters may set. */
export type Options = Partial<SamplingOptions> & LoadingOptions;

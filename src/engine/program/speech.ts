/** The interface of models that write down speech, in the manner of Whisper. */

export interface SpeechModel {
  /** Bands of the spectrograms that it hears. */
  readonly bins: number;
  readonly vocabSize: number;
  /** Tokens of a window's text, its prompt included. */
  readonly ctxLen: number;
  /** Ids that are never written, and ids that never begin a text. */
  readonly suppressed: readonly number[];
  readonly suppressedFirst: readonly number[];
  /** Encodes 30 seconds. @param mel (bins, 3000) */
  hear(mel: Float32Array): Promise<HeardWindow>;
  /** Releases what no session owns. */
  close?(): void;
}

/** An encoded window, and one text about it. */
export interface HeardWindow {
  /** Appends tokens to the text. Returns the logits of the next one, in an array of the caller's. */
  extend(tokens: readonly number[]): Promise<Float32Array>;
  /** Begins a new text. */
  restart(): void;
}

/** The interface of models that transcribe speech, like Whisper. */

export interface SpeechModel {
  /** Number of mel bands of its spectrograms. */
  readonly bins: number;
  readonly vocabSize: number;
  /** Maximum tokens of a window's text, prompt included. */
  readonly ctxLen: number;
  /** Ids that are never generated, and ids that never begin a text. */
  readonly suppressed: readonly number[];
  readonly suppressedFirst: readonly number[];
  /** Encodes 30 seconds. @param mel (bins, 3000) */
  hear(mel: Float32Array): Promise<HeardWindow>;
  /** Releases resources that no session owns. */
  close?(): void;
}

/** An encoded window, and one transcript of it. */
export interface HeardWindow {
  /** Appends tokens to the text. Returns the logits of the next token, in an array of the caller's. */
  extend(tokens: readonly number[]): Promise<Float32Array>;
  /** Begins a new text. */
  restart(): void;
}

/**
 * What a tokenizer is: text to ids and back, exactly as llama.cpp does it from the same GGUF metadata. `load.ts` builds
 * one; each family has its own file.
 */

interface EncodeOptions {
  /** Add BOS / EOS where the model's metadata asks for them. */
  readonly addSpecial: boolean;
  /** Turn the text of control tokens (`<|im_end|>`) into their ids; otherwise it is plain text. */
  readonly parseSpecial: boolean;
}

/** A part of a prompt's text. */
export interface TextSegment {
  readonly text: string;
  /** Whether texts of control tokens in it are read as those tokens, where they are read at all. */
  readonly control: boolean;
}

/** Ids of the three markers around a gap that a model fills in. */
export interface FillTokens {
  readonly prefix: number;
  readonly suffix: number;
  readonly middle: number;
}

export interface Tokenizer {
  readonly family: "bpe" | "spm" | "wpm" | "ugm" | "plamo" | "none";
  readonly vocabSize: number;
  readonly bos: number | undefined;
  readonly eos: number | undefined;
  /** What `addSpecial` puts before a text, and after it; undefined for nothing. */
  readonly before: number | undefined;
  readonly after: number | undefined;
  /** Ids that end a generation (eos, eot, eom, …). */
  readonly endOfGeneration: ReadonlySet<number>;
  /** Distinct ids that an answer never has, whatever their logits. */
  readonly suppressed: Int32Array;
  /** Neighbouring segments are one text: where they meet is no border but for control tokens. */
  encode(text: string | readonly TextSegment[], options: EncodeOptions): Int32Array;
  /** Where texts of control tokens are in a text, also where they overlap, and where one may begin at its end. */
  findControl(text: string): { readonly start: number; readonly end: number }[];
  /** The bytes that a token stands for; control tokens give none unless `special`. */
  bytesOf(id: number, options?: { special?: boolean }): Uint8Array;
  /** Ids → text; bytes that are no UTF-8 become U+FFFD. */
  detokenize(ids: Iterable<number>, options?: { special?: boolean }): string;
  /** Markers for filling in the middle, where the model has them. */
  readonly fill?: FillTokens;
  /** Id of the token that is one line feed. */
  readonly newlineId: number | undefined;
}

/** Turns ids into text one by one, never emitting half a UTF-8 character. */
export interface StreamDetokenizer {
  /** Text that is complete after this token; may be empty. */
  push(id: number): string;
  /** What is left; bytes that never completed become U+FFFD. */
  end(): string;
}

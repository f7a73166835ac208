/**
 * The interface of tokenizers: text to ids and back, exactly like llama.cpp with the same GGUF metadata. `load.ts`
 * builds one; each family has its own file.
 */

interface EncodeOptions {
  /** Adds BOS / EOS if the model's metadata asks for them. */
  readonly addSpecial: boolean;
  /** Turns the text of control tokens (`<|im_end|>`) into their ids; otherwise it is plain text. */
  readonly parseSpecial: boolean;
}

/** A part of a prompt's text. */
export interface TextSegment {
  readonly text: string;
  /** True if control tokens in it are recognised (with `parseSpecial`). */
  readonly control: boolean;
}

/** Ids of the three markers around a gap that a model fills in. */
export interface FillTokens {
  readonly prefix: number;
  readonly suffix: number;
  readonly middle: number;
  /** Begins the name of a repository, before its files. */
  readonly repository?: number | undefined;
  /** Begins the name of a file, before its text. */
  readonly file?: number | undefined;
}

export interface Tokenizer {
  readonly family: "bpe" | "spm" | "wpm" | "ugm" | "plamo" | "world" | "none";
  readonly vocabSize: number;
  readonly bos: number | undefined;
  readonly eos: number | undefined;
  /** Tokens that `addSpecial` puts before and after a text; undefined for none. */
  readonly before: number | undefined;
  readonly after: number | undefined;
  /** Ids that end a generation (eos, eot, eom, …). */
  readonly endOfGeneration: ReadonlySet<number>;
  /** Distinct ids that never occur in an answer, whatever their logits. */
  readonly suppressed: Int32Array;
  /** Adjacent segments are one text; only control tokens cannot span the boundary between them. */
  encode(text: string | readonly TextSegment[], options: EncodeOptions): Int32Array;
  /** Ranges of control tokens in a text, including overlapping ones, and a possible beginning of one at its end. */
  findControl(text: string): { readonly start: number; readonly end: number }[];
  /** The bytes of a token; empty for control tokens unless `special`. */
  bytesOf(id: number, options?: { special?: boolean }): Uint8Array;
  /** Ids → text; invalid UTF-8 becomes U+FFFD. */
  detokenize(ids: Iterable<number>, options?: { special?: boolean }): string;
  /** Markers for filling in the middle, if the model has them. */
  readonly fill?: FillTokens;
  /** Id of the token that is one line feed. */
  readonly newlineId: number | undefined;
}

/** Decodes ids one by one, and never returns a partial UTF-8 character. */
export interface StreamDetokenizer {
  /** The text that this token completes; may be empty. */
  push(id: number): string;
  /** The rest; incomplete bytes become U+FFFD. */
  end(): string;
}

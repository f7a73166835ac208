/**
 * The converter's description of an architecture: metadata from its configuration, and a table from Hugging Face's
 * weight names to GGUF's. Metadata keys and tensor names follow gguf.md and llama.cpp.
 */
import type { WriteValue } from "../../engine/formats/index.ts";
import type { Config } from "./config.ts";

/** Rows of each expert's matrix: every `step`-th, from `first`. */
export interface ExpertRows {
  readonly first: number;
  readonly step: number;
}

/** Rows of a source tensor: slices along its last dimension, or the values of a vector. */
export interface RowSelection {
  /** Slowest-varying dimension first. */
  readonly shape: readonly number[];
  /** The source row of each row; default: the original order. */
  readonly order?: readonly number[];
  /** Values of a row, if rows are cut into smaller ones. */
  readonly rowLen?: number;
}

export interface TensorRule {
  /** GGUF's name, without `.weight` or `.bias`; `*` is the layer. */
  readonly to: string;
  /** The rows to take, from the shape of the source. */
  readonly rows?: (shape: readonly number[]) => RowSelection;
  /** The file stores the transposed matrix, or several. */
  readonly isTransposed?: boolean;
  /** The order of equal parts of the transposed matrix, which are concatenated. */
  readonly groups?: readonly number[];
  /** One of several tensors that a GGUF stacks, with its index. */
  readonly part?: { readonly at: number; readonly of: number };
  /** Applied to every weight. */
  readonly value?: (weight: number) => number;
  /**
   * The file stores the experts' matrices stacked, either transposed, (experts, inDim, rows), or as MXFP4 blocks,
   * (experts, rows, inDim / 32, 16) bytes, with their scales in a tensor that ends in `_scales` instead of `_blocks`.
   */
  readonly experts?: ExpertRows;
  /**
   * The file may store an expert's matrix as (rows, inDim / 2) bytes of MXFP4, with scales in `_scale` instead of
   * `_packed`, or in `.scale` instead of `.weight`.
   */
  readonly isPacked?: boolean;
  /** The tensor has whole numbers, not weights. */
  readonly isTable?: boolean;
  /** The name of a vector by which this one is multiplied, from this one's name. */
  readonly times?: (name: string) => string;
  /** Heads whose rows are reordered to pairs; see `TensorSource`. */
  readonly pairedHeads?: number;
  /** Added to every weight. */
  readonly shift?: number;
  /** The weight stays float32 although it is a matrix. */
  readonly precise?: boolean;
  /** Some models do not have it; `layers`: some layers do not. */
  readonly optional?: boolean | "layers";
  /** Layers of the part that it belongs to; default: the model's. */
  readonly layers?: number;
}

/**
 * Rules by name, without the prefix `model.` and the suffix `.weight` or `.bias`, or by the whole name. `*` stands for
 * the layer, and `#` for an expert, whose matrices are stacked in order; a number matches only that layer. Several
 * rules divide a tensor; names with the same target are alternatives. Biases are always optional.
 */
export type TensorTable = Readonly<Record<string, TensorRule | readonly TensorRule[]>>;

/** Small tensors computed from the configuration, (n) float32 each. */
export type Computed = Readonly<Record<string, Float32Array>>;

export interface Architecture {
  /** `general.architecture` */
  readonly arch: string;
  /** The activations that the architecture implies in GGUF; a folder with another one is refused. Default: any. */
  readonly activations?: readonly string[];
  /** The configuration's key for it. Default: `hidden_act`. */
  readonly activationKey?: string;
  /**
   * Metadata, by key without the architecture prefix. Throws `unsupported` for configurations that a GGUF cannot
   * express.
   */
  metadata(config: Config): Record<string, WriteValue>;
  /** As `metadata`, from `generation_config.json`, whose values override. */
  settings?(generation: Config): Record<string, WriteValue>;
  /** Whole metadata keys, which the tokenizer may override. */
  readonly whole?: Readonly<Record<string, WriteValue>>;
  tensors(config: Config): TensorTable;
  /** The image encoder in the same file; `vision` is its configuration, `images` that of `preprocessor_config.json`. */
  readonly encoder?: {
    metadata(vision: Config, images: Config): Record<string, WriteValue>;
    tensors(vision: Config): TensorTable;
  };
  computed?(config: Config): Computed;
  /** Metadata keys, whole, by the names of one-value tensors; each gets a list of the layers' values. */
  readonly layerValues?: Readonly<Record<string, string>>;
  /** It scores pairs of texts, between its tokenizer's marks. */
  readonly ranksPairs?: boolean;
  /** Tokens whose rows of the output replace the output by a head that ranks. */
  readonly answers?: readonly string[];
  /** True: a GGUF gets an output, whatever `tie_word_embeddings` says: the folder's, or the embedding again. */
  readonly keepsOutput?: true;
  /** Names of equal tensors, of which files have one or several: the first one there counts. */
  readonly copies?: readonly string[];
  /** Weights that no forward pass needs, by name without the prefix `model.`. */
  readonly unused?: RegExp;
  /** For BPE on text: GGUF's own name for it, and tokens that stay visible in answers. Default: as SentencePiece. */
  readonly textTokens?: { readonly model: string; readonly visible: readonly string[] };
  /** `world`: the vocabulary is RWKV's, in a separate file. */
  readonly vocabulary?: "world";
  /**
   * GGUF's name for the rule by which a vocabulary in `tiktoken.model` splits text; absent: such a vocabulary is
   * refused.
   */
  readonly tiktoken?: string;
  /** Default of the vocabulary if no file sets it. */
  readonly addSpacePrefix?: boolean;
  /**
   * For tokenizers that distinguish families by the model's name: `fallback`, unless the folder's name is a known one.
   */
  readonly name?: { readonly fallback: string; readonly known: RegExp };
}

export const u32 = (value: number): WriteValue => ({ u32: value });
export const f32 = (value: number): WriteValue => ({ f32: value });

/** Entries whose value is defined. */
export function defined(entries: Readonly<Record<string, WriteValue | undefined>>): Record<string, WriteValue> {
  return Object.fromEntries(Object.entries(entries).filter((entry): entry is [string, WriteValue] => !!entry[1]));
}

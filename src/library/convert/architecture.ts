/**
 * What an architecture is to the converter: the metadata that its configuration becomes, and a table from Hugging
 * Face's names of weights to GGUF's. Metadata keys and tensor names are those of gguf.md and llama.cpp.
 */
import type { WriteValue } from "../../engine/formats/index.ts";
import type { Config } from "./config.ts";

export interface TensorRule {
  /** GGUF's name, without `.weight` or `.bias`; `*` is the layer. */
  readonly to: string;
  /** Heads whose rows are paired anew; see `TensorSource`. */
  readonly pairedHeads?: number;
  /** Added to every weight. */
  readonly shift?: number;
  /** Kept as float32, though it is a matrix. */
  readonly precise?: boolean;
  /** Models without it exist. */
  readonly optional?: boolean;
}

/**
 * Rules by name, without `model.` in front and `.weight` or `.bias` behind; `*` is the layer. A bias may always be
 * missing.
 */
export type TensorTable = Readonly<Record<string, TensorRule>>;

/** Small tensors that are computed from the configuration, (n) float32 each. */
export type Computed = Readonly<Record<string, Float32Array>>;

export interface Architecture {
  /** `general.architecture` */
  readonly arch: string;
  /** Metadata, by key without the architecture in front. Throws `unsupported` for what a GGUF of it cannot say. */
  metadata(config: Config): Record<string, WriteValue>;
  tensors(config: Config): TensorTable;
  computed?(config: Config): Computed;
  /** Weights that no forward pass needs, by their name without `model.` in front. */
  readonly unused?: RegExp;
  /** What the vocabulary does where no file says so. */
  readonly addSpacePrefix?: boolean;
  /** For tokenizers that tell families apart by the model's name, where no file has one: unless the folder's tells. */
  readonly name?: { readonly fallback: string; readonly known: RegExp };
}

export const u32 = (value: number): WriteValue => ({ u32: value });
export const f32 = (value: number): WriteValue => ({ f32: value });

/** Entries without those that are undefined. */
export function defined(entries: Readonly<Record<string, WriteValue | undefined>>): Record<string, WriteValue> {
  return Object.fromEntries(Object.entries(entries).filter((entry): entry is [string, WriteValue] => !!entry[1]));
}

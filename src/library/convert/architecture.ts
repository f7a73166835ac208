/**
 * The converter's description of an architecture: metadata from its configuration, and a table from Hugging Face's
 * weight names to GGUF's. Metadata keys and tensor names follow gguf.md and llama.cpp.
 */
import type { WriteValue } from "../../engine/formats/index.ts";
import type { Config } from "./config.ts";

export interface TensorRule {
  /** GGUF's name, without `.weight` or `.bias`; `*` is the layer. */
  readonly to: string;
  /** Heads whose rows are reordered to pairs; see `TensorSource`. */
  readonly pairedHeads?: number;
  /** Added to every weight. */
  readonly shift?: number;
  /** Stays float32 although it is a matrix. */
  readonly precise?: boolean;
  /** Some models do not have it. */
  readonly optional?: boolean;
}

/**
 * Rules by name, without the prefix `model.` and the suffix `.weight` or `.bias`; `*` is the layer. Biases are always
 * optional.
 */
export type TensorTable = Readonly<Record<string, TensorRule>>;

/** Small tensors computed from the configuration, (n) float32 each. */
export type Computed = Readonly<Record<string, Float32Array>>;

export interface Architecture {
  /** `general.architecture` */
  readonly arch: string;
  /**
   * Metadata, by key without the architecture prefix. Throws `unsupported` for configurations that a GGUF cannot
   * express.
   */
  metadata(config: Config): Record<string, WriteValue>;
  tensors(config: Config): TensorTable;
  computed?(config: Config): Computed;
  /** Weights that no forward pass needs, by name without the prefix `model.`. */
  readonly unused?: RegExp;
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

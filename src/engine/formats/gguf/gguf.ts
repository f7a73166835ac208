/**
 * What a GGUF file holds once read: metadata and tensor infos, with the weights still in the file.
 * Format: gguf.md in ggml's docs. The reader is `read.ts`, split files `shards.ts`; the writer is in
 * `src/engine/formats/files`.
 */
import type { Quant } from "../quant/quant.ts";
import type { Texts } from "./texts.ts";

/** A metadata value. 64-bit integers that fit in 2^53 are numbers, others bigint. */
export type MetadataValue = number | bigint | boolean | string | MetadataArray;
/** Numeric arrays are typed arrays of the stored type; others plain arrays. */
export type MetadataArray =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array
  | boolean[]
  | string[]
  | MetadataArray[];
export type Metadata = ReadonlyMap<string, MetadataValue>;

export interface TensorInfo {
  readonly name: string;
  /** GGUF order: the fastest-varying dimension first. */
  readonly shape: readonly number[];
  readonly quant: Quant;
  /** Size in bytes, all of it inside the file. */
  readonly byteLength: number;
  /** Which shard holds it; 0 for a single file. */
  readonly shard: number;
  /** Offset in that file, in bytes. */
  readonly offset: number;
}

/** What the headers of a model's files say together: all but the weights. */
export type ModelHeader = Omit<Gguf, "read" | "readRange" | "close">;

/** An open GGUF (all its shards). What `read` and `readRange` return is good until `close`. */
export interface Gguf {
  /** Path of the first file. */
  readonly path: string;
  readonly version: 2 | 3;
  readonly metadata: Metadata;
  /** Lists of strings that stay bytes, by key; they are empty in the metadata. */
  readonly texts?: ReadonlyMap<string, Texts>;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** Bytes of all shards together. */
  readonly fileBytes: number;
  /** Packed bytes of a tensor. Throws `bad_file` naming the tensor where there is none. */
  read(tensorName: string): Uint8Array;
  /** Some of them. */
  readRange(tensorName: string, start: number, length: number): Uint8Array;
  close(): void;
}

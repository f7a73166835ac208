/**
 * The content of a GGUF file after reading: metadata and tensor infos, with the weights still in the file. Format:
 * gguf.md in ggml's docs. The reader is `read.ts`, split files are `shards.ts`; the writer is in
 * `src/engine/formats/files`.
 */
import type { Quant } from "../quant/quant.ts";
import type { FilePlace } from "./source.ts";
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
  /** GGUF order: fastest-varying dimension first. */
  readonly shape: readonly number[];
  readonly quant: Quant;
  /** Size in bytes, completely inside the file. */
  readonly byteLength: number;
  /** Index of its shard; 0 for a single file. */
  readonly shard: number;
  /** Offset in that file, in bytes. */
  readonly offset: number;
}

/** The combined headers of a model's files, without the weights. */
export type ModelHeader = Omit<Gguf, "read" | "readRange" | "place" | "close">;

/** An open GGUF (all its shards). Results of `read` and `readRange` are valid until `close`. */
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
  /** Packed bytes of a tensor. Throws `bad_file` naming the tensor if it does not exist. */
  read(tensorName: string): Uint8Array;
  /** A part of them. */
  readRange(tensorName: string, start: number, length: number): Uint8Array;
  /** The position of a tensor's bytes in its file; undefined, or omitted: they are in no file. */
  place?(tensorName: string): FilePlace | undefined;
  close(): void;
}

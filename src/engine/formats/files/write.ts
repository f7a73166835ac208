/**
 * Writes GGUF version 3. Tensor data may be streamed, so a model never has to fit in memory. The caller's mistakes (a
 * shape that does not fit its block type, data whose length differs from the shape) are asserts, not `AppError`s.
 */
import { open } from "node:fs/promises";
import { assert, inBlocks } from "../../../base/index.ts";
import { alignUp, isPowerOfTwo } from "../bytes.ts";
import { writeChunks, writeDurably } from "../../../base/system.ts";
import type { Quant } from "../quant/quant.ts";
import type { MetadataArray } from "../gguf/gguf.ts";
import { ARRAY, BOOL, numberTypes, STRING, type NumberTypeName } from "../gguf/value-types.ts";

const MAGIC = "GGUF";
const VERSION = 3;
const DEFAULT_ALIGNMENT = 32; // GGUF_DEFAULT_ALIGNMENT

/**
 * A number has its type as key, as in `{ u32: 4 }`; the types of other values are clear. An empty `[]` is an array of
 * strings.
 */
export type WriteValue =
  boolean | string | MetadataArray | { [K in NumberTypeName]: Record<K, number | bigint> }[NumberTypeName];

export interface WriteTensor {
  readonly name: string;
  /** GGUF order: fastest-varying dimension first. */
  readonly shape: readonly number[];
  readonly quant: Quant;
  /** Packed blocks, in one piece or many. */
  readonly data: Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
}

/** The content of a file. `general.alignment` in the metadata sets the alignment of tensor data. */
export interface WriteModel {
  readonly metadata: Readonly<Record<string, WriteValue>>;
  readonly tensors: readonly WriteTensor[];
}

/** Writes as `writeDurably` does: a reader sees the complete file or none. Throws `storage`. */
export const writeGguf = (path: string, model: WriteModel): Promise<void> =>
  writeDurably(path, (temporary) => writeNewGguf(temporary, model));

/** Writes a file that is not yet visible to others, and flushes it to disk. A failure may leave a partial file. */
export async function writeNewGguf(path: string, model: WriteModel): Promise<void> {
  const file = await open(path, "wx");
  try {
    await writeChunks(file, inBlocks(partsOf(model)));
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The whole file, in chunks. */
async function* partsOf(model: WriteModel): AsyncGenerator<Uint8Array, void, void> {
  const { header, alignment, byteLengths } = encodeHeader(model);
  yield header;
  for (const [i, { name, data }] of model.tensors.entries()) {
    let length = 0;
    for await (const chunk of data instanceof Uint8Array ? [data] : data) {
      yield chunk;
      length += chunk.length;
    }
    assert(
      length === byteLengths[i],
      `tensor '${name}': data of ${length} bytes where the shape says ${byteLengths[i]}`,
    );
    yield new Uint8Array(alignUp(length, alignment) - length);
  }
}

interface EncodedHeader {
  /** Padded to the alignment: tensor data follows. */
  readonly header: Uint8Array;
  readonly alignment: number;
  /** Size of each tensor's data, before padding. */
  readonly byteLengths: readonly number[];
}

/** Everything before the tensor data. */
export function encodeHeader({ metadata, tensors }: WriteModel): EncodedHeader {
  const alignment = alignmentOf(metadata);
  const sink = makeSink();
  sink.bytes(Buffer.from(MAGIC));
  sink.u32(VERSION);
  sink.u64(tensors.length);
  sink.u64(Object.keys(metadata).length);
  for (const [key, value] of Object.entries(metadata)) {
    sink.string(key);
    sink.u32(typeIdOf(value));
    putValue(sink, value);
  }
  const byteLengths: number[] = [];
  let offset = 0;
  for (const { name, shape, quant } of tensors) {
    sink.string(name);
    sink.u32(shape.length);
    for (const size of shape) sink.u64(size);
    sink.u32(quant.ggmlType);
    sink.u64(offset);
    const byteLength = byteLengthOf(name, shape, quant);
    byteLengths.push(byteLength);
    offset += alignUp(byteLength, alignment);
  }
  assert(new Set(tensors.map(({ name }) => name)).size === tensors.length, "two tensors of one name");
  sink.bytes(new Uint8Array(alignUp(sink.length(), alignment) - sink.length()));
  return { header: sink.take(), alignment, byteLengths };
}

function byteLengthOf(name: string, shape: readonly number[], quant: Quant): number {
  const blocks = shape.reduce((product, size) => product * size, 1) / quant.blockLen;
  const whole = Number.isSafeInteger(blocks) && blocks > 0 && (shape[0] ?? 1) % quant.blockLen === 0;
  assert(whole, `tensor '${name}': rows of (${shape.join(", ")}) are not whole ${quant.name} blocks`);
  return blocks * quant.blockBytes;
}

function alignmentOf(metadata: WriteModel["metadata"]): number {
  const value = metadata["general.alignment"];
  if (value === undefined) return DEFAULT_ALIGNMENT;
  const alignment = typeof value === "object" && "u32" in value ? Number(value.u32) : NaN;
  assert(isPowerOfTwo(alignment), "general.alignment is not a u32 power of two");
  return alignment;
}

function typeIdOf(value: WriteValue): number {
  if (typeof value === "boolean") return BOOL;
  if (typeof value === "string") return STRING;
  return Array.isArray(value) || ArrayBuffer.isView(value) ? ARRAY : numberOf(value).type.id;
}

function numberOf(value: Record<string, number | bigint>) {
  const [name, number] = Object.entries(value)[0]!; // the type has exactly one key
  return { type: numberTypes[name as NumberTypeName], number }; // and that key is a type name
}

function putValue(sink: Sink, value: WriteValue): void {
  if (typeof value === "boolean") return sink.bytes(Uint8Array.of(value ? 1 : 0));
  if (typeof value === "string") return sink.string(value);
  if (ArrayBuffer.isView(value)) return putNumbers(sink, value);
  if (Array.isArray(value)) return putList(sink, value);
  const { type, number } = numberOf(value);
  const big = type.array === BigInt64Array || type.array === BigUint64Array;
  // The cast is safe: each constructor gets the kind of number it takes.
  const array = type.array.of((big ? BigInt(number) : Number(number)) as never);
  sink.bytes(new Uint8Array(array.buffer));
}

function putNumbers(sink: Sink, value: Extract<MetadataArray, ArrayBufferView>): void {
  const type = Object.values(numberTypes).find(({ array }) => value instanceof array);
  assert(type, "an array of a type that GGUF does not have");
  sink.u32(type.id);
  sink.u64(value.length);
  sink.bytes(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
}

function putList(sink: Sink, items: readonly (string | boolean | MetadataArray)[]): void {
  const id = items.length === 0 ? STRING : typeIdOf(items[0]!); // not empty
  sink.u32(id);
  sink.u64(items.length);
  for (const item of items) {
    assert(typeIdOf(item) === id, "an array of mixed types");
    putValue(sink, item);
  }
}

interface Sink {
  length(): number;
  u32(value: number): void;
  u64(value: number): void;
  string(text: string): void;
  bytes(bytes: Uint8Array): void;
  take(): Uint8Array;
}

/** A buffer that doubles when full. */
function makeSink(): Sink {
  let buffer = Buffer.alloc(2 ** 16);
  let length = 0;
  /**
   * Makes room for `count` more bytes; returns their offset. Must be called before `buffer` is read, which it may
   * replace.
   */
  function grow(count: number): number {
    const at = length;
    length += count;
    if (length > buffer.length) {
      const wider = Buffer.alloc(Math.max(2 * buffer.length, length));
      wider.set(buffer.subarray(0, at));
      buffer = wider;
    }
    return at;
  }
  function u64(value: number): void {
    const at = grow(8);
    buffer.writeBigUInt64LE(BigInt(value), at);
  }
  return {
    u64,
    u32(value) {
      const at = grow(4);
      buffer.writeUInt32LE(value, at);
    },
    string(text) {
      const count = Buffer.byteLength(text);
      u64(count);
      const at = grow(count);
      buffer.write(text, at, "utf8");
    },
    bytes(bytes) {
      const at = grow(bytes.length);
      buffer.set(bytes, at);
    },
    length: () => length,
    take: () => buffer.subarray(0, length),
  };
}

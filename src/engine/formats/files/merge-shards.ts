/**
 * Joins the parts of a split model into one file, as `llama-gguf-split --merge` does: the metadata of the first part
 * with `split.count` set to 0, then the tensors of all parts in order. Tensor data is streamed.
 */
import { open } from "node:fs/promises";
import { alignUp } from "../bytes.ts";
import { makeCursor, readCount, readText, readU32, take, type Cursor } from "../gguf/cursor.ts";
import type { TensorInfo } from "../gguf/gguf.ts";
import { readPart } from "./read-header.ts";
import { getNumber } from "../gguf/keys.ts";
import { endedEarly } from "../../../base/system.ts";
import type { Header } from "../gguf/parse.ts";
import { joinTensors } from "../gguf/shards.ts";
import { ARRAY, BOOL, numberTypeOf, STRING } from "../gguf/value-types.ts";

const CHUNK_BYTES = 2 ** 20;
const COUNTS_AT = 8; // after magic and version
const DEFAULT_ALIGNMENT = 32; // GGUF_DEFAULT_ALIGNMENT

/**
 * The bytes of the joined file, in chunks that are valid until the next one.
 * @param paths all parts, in order
 * Throws `bad_file` before the first chunk if the parts do not belong to one model.
 */
export async function* mergeShards(paths: readonly string[]): AsyncGenerator<Uint8Array, void, void> {
  const headers: Header[] = [];
  for (const [shard, path] of paths.entries()) headers.push((await readPart(path, { shard, arrayItemsMax: 0 })).header);
  const tensors = [...joinTensors(paths, headers).values()];
  const first = headers[0]!; // a model has at least one part
  const alignment = getNumber(first.metadata, "general.alignment", DEFAULT_ALIGNMENT);
  const path = paths[0]!; // the file with the header
  yield joinedHeader(await readStart(path, first.dataOffset), { tensors, alignment, path });
  const chunk = new Uint8Array(CHUNK_BYTES);
  for (const [shard, path] of paths.entries()) {
    await using file = await open(path, "r");
    for (const tensor of tensors.filter((one) => one.shard === shard)) {
      for (let done = 0; done < tensor.byteLength;) {
        const length = Math.min(CHUNK_BYTES, tensor.byteLength - done);
        const { bytesRead } = await file.read(chunk, 0, length, tensor.offset + done);
        if (bytesRead === 0) throw endedEarly(path);
        yield chunk.subarray(0, bytesRead);
        done += bytesRead;
      }
      yield new Uint8Array(alignUp(tensor.byteLength, alignment) - tensor.byteLength);
    }
  }
}

async function readStart(path: string, length: number): Promise<Uint8Array> {
  return Bun.file(path).slice(0, length).bytes();
}

interface Joined {
  readonly tensors: readonly TensorInfo[];
  readonly alignment: number;
  readonly path: string;
}

function joinedHeader(bytes: Uint8Array, { tensors, alignment, path }: Joined): Uint8Array {
  const head = metadataPart(bytes, path);
  head.writeBigUInt64LE(BigInt(tensors.length), COUNTS_AT);
  const parts: Uint8Array[] = [head];
  let offset = 0;
  for (const tensor of tensors) {
    parts.push(encodeInfo(tensor, offset));
    offset += alignUp(tensor.byteLength, alignment);
  }
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([...parts, new Uint8Array(alignUp(length, alignment) - length)]);
}

/** A copy of everything before the tensor infos, with `split.count` set to 0. The header was parsed, so it is valid. */
function metadataPart(bytes: Uint8Array, path: string): Buffer {
  const cursor = makeCursor(bytes.slice(), path);
  cursor.at = COUNTS_AT + 8;
  const keyCount = readCount(cursor, "metadata count", Number.MAX_SAFE_INTEGER);
  for (let i = 0; i < keyCount; i++) {
    const key = skipString(cursor);
    const type = readU32(cursor, "value type");
    const at = cursor.at;
    skipValue(cursor, type);
    if (key === "split.count") cursor.bytes.fill(0, at, cursor.at);
  }
  return Buffer.from(cursor.bytes.buffer, 0, cursor.at);
}

function skipString(cursor: Cursor): string {
  const length = readCount(cursor, "length of a string", cursor.bytes.length);
  return readText(cursor, "string", length);
}

function skipValue(cursor: Cursor, type: number): void {
  if (type === STRING) {
    take(cursor, readCount(cursor, "length of a string", cursor.bytes.length), "string");
  } else if (type === ARRAY) {
    const itemType = readU32(cursor, "item type");
    const count = readCount(cursor, "array length", cursor.bytes.length);
    const size = sizeOf(itemType);
    if (size !== undefined) take(cursor, count * size, "array");
    else for (let i = 0; i < count; i++) skipValue(cursor, itemType);
  } else take(cursor, sizeOf(type) ?? 0, "value");
}

/** Bytes of a value of fixed size. */
function sizeOf(type: number): number | undefined {
  return type === BOOL ? 1 : numberTypeOf(type)?.array.BYTES_PER_ELEMENT;
}

/** One entry of the tensor infos: gguf_tensor_info_t in gguf.md. */
function encodeInfo({ name, shape, quant }: TensorInfo, offset: number): Buffer {
  const text = Buffer.from(name);
  const out = Buffer.alloc(8 + text.length + 4 + 8 * shape.length + 4 + 8);
  out.writeBigUInt64LE(BigInt(text.length), 0);
  let at = 8 + text.copy(out, 8);
  at = out.writeUInt32LE(shape.length, at);
  for (const size of shape) at = out.writeBigUInt64LE(BigInt(size), at);
  at = out.writeUInt32LE(quant.ggmlType, at);
  out.writeBigUInt64LE(BigInt(offset), at);
  return out;
}

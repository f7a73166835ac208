/**
 * GGUF header → metadata and tensor infos, without I/O. Format: gguf.md in ggml's docs; limits as gguf.cpp or tighter.
 *
 * The bytes are hostile until checked: every count is compared with a named limit and with the bytes that remain before
 * anything is allocated for it, so that what we hold stays in proportion to the file.
 */
import { alignUp, isPowerOfTwo } from "../base/bytes.ts";
import { AppError } from "../base/errors.ts";
import { quantOf, unsupportedQuant } from "../quant/index.ts";
import { badFile, makeCursor, readCount, readString, readU32, take, type Cursor } from "./cursor.ts";
import type { Metadata, MetadataArray, MetadataValue, TensorInfo } from "./gguf.ts";
import { ARRAY, BOOL, numberTypeOf, STRING, type NumberType } from "./value-types.ts";

const MAGIC = 0x46554747; // "GGUF", little-endian
const DEFAULT_ALIGNMENT = 32; // GGUF_DEFAULT_ALIGNMENT

/** Metadata entries. Real models have 20 to 60. */
const MAX_KEYS = 65_536;
/** The format's own limit. */
const MAX_KEY_BYTES = 65_535;
/** The longest strings seen are chat templates of under 100 kB and licences of under 1 MB. */
const MAX_STRING_BYTES = 16 * 2 ** 20;
/** Items of string and bool arrays in all, as each costs more in memory than in the file. Gemma 4 has 777 thousand. */
const MAX_LIST_ITEMS = 4 * 2 ** 20;
/** Arrays inside arrays, which no model is known to have; an empty one costs ten times its bytes in the file. */
const MAX_NESTED_ARRAYS = 4096;
/** How deep they go. */
const MAX_ARRAY_DEPTH = 4;
/** Tensors of one file. Deep mixture-of-experts models with unmerged experts have some ten thousand. */
const MAX_TENSORS = 65_536;
/** ggml stops at 63; forks for image models go to 127. */
const MAX_TENSOR_NAME_BYTES = 255;
/** GGML_MAX_DIMS */
const MAX_DIMS = 4;
/** Padding is never useful beyond a huge page. */
const MAX_ALIGNMENT = 2 * 2 ** 20;

/** What a header says of its own file. */
export interface Header {
  readonly version: 2 | 3;
  readonly metadata: Metadata;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** Where tensor data begins, in bytes. */
  readonly dataOffset: number;
}

export interface ParseOptions {
  /** Size of the whole file, where `bytes` is only its beginning. */
  readonly fileBytes?: number;
  /** Which shard these tensors are in. */
  readonly shard?: number;
}

/**
 * Reads a header.
 * @param path only for messages
 * Throws `bad_file` naming field, offset, expected and found, or `unsupported` for block types that we cannot read.
 */
export function parseGguf(bytes: Uint8Array, path: string, options: ParseOptions = {}): Header {
  const cursor = makeCursor(bytes, path);
  const version = readVersion(cursor);
  const tensorCount = readCount(cursor, "tensor count", MAX_TENSORS);
  const keyCount = readCount(cursor, "metadata count", MAX_KEYS);
  const metadata = readMetadata(cursor, keyCount);
  const alignment = alignmentOf(metadata, path);
  const drafts: TensorDraft[] = [];
  for (let i = 0; i < tensorCount; i++) drafts.push(readTensorDraft(cursor, i));
  const dataOffset = alignUp(cursor.at, alignment);
  const fileBytes = options.fileBytes ?? bytes.length;
  const tensors = placeTensors(drafts, { cursor, alignment, dataOffset, fileBytes, shard: options.shard ?? 0 });
  return { version, metadata, tensors, dataOffset };
}

function readVersion(cursor: Cursor): 2 | 3 {
  const head = cursor.bytes.subarray(0, 4);
  if (head.length < 4 || readU32(cursor, "magic") !== MAGIC) {
    const found = head.length < 4 ? `a file of ${head.length} bytes` : `bytes ${head.toHex()}`;
    throw badFile(cursor, { field: "magic", at: 0, expected: "'GGUF' (bytes 47475546)", found });
  }
  const version = readU32(cursor, "version");
  if (version === 2 || version === 3) return version;
  const big = cursor.view.getUint32(4, false);
  const found =
    version === 1
      ? "1, a format of 2023 that must be converted again"
      : big > 0 && big < 65_536
        ? `${big} in big-endian order, which is not supported`
        : String(version);
  throw badFile(cursor, { field: "version", at: 4, expected: "2 or 3, little-endian", found });
}

function readMetadata(cursor: Cursor, count: number): Map<string, MetadataValue> {
  const metadata = new Map<string, MetadataValue>();
  for (let i = 0; i < count; i++) {
    const at = cursor.at;
    const key = readString(cursor, `metadata key ${i}`, MAX_KEY_BYTES);
    if (key === "" || metadata.has(key)) {
      const found = key === "" ? "an empty one" : `'${key}' again`;
      throw badFile(cursor, { field: `metadata key ${i}`, at, expected: "a new name", found });
    }
    const field = `metadata '${key}'`;
    metadata.set(key, readValue(cursor, field, { type: readU32(cursor, field), depth: 0 }));
  }
  return metadata;
}

function readValue(cursor: Cursor, field: string, { type, depth }: { type: number; depth: number }): MetadataValue {
  if (type === STRING) return readString(cursor, field, MAX_STRING_BYTES);
  if (type === ARRAY) return readArray(cursor, field, depth + 1);
  if (type === BOOL) return readBool(cursor, field);
  const numbers = numberTypeOf(type);
  if (!numbers) {
    throw badFile(cursor, { field, at: cursor.at - 4, expected: "a value type from 0 to 12", found: String(type) });
  }
  return narrow(readNumbers(cursor, field, { type: numbers, count: 1 })[0]!); // it has one item
}

/** A copy of `count` numbers: metadata outlives the mapping, and the file aligns nothing. */
function readNumbers(cursor: Cursor, field: string, { type, count }: { type: NumberType; count: number }) {
  const start = take(cursor, count * type.array.BYTES_PER_ELEMENT, field);
  return new type.array(cursor.bytes.slice(start, cursor.at).buffer);
}

function narrow(value: number | bigint): number | bigint {
  const number = Number(value);
  return typeof value === "number" || Number.isSafeInteger(number) ? number : value;
}

function readBool(cursor: Cursor, field: string): boolean {
  const at = take(cursor, 1, field);
  const byte = cursor.bytes[at]!;
  if (byte > 1) throw badFile(cursor, { field, at, expected: "0 or 1 for a bool", found: String(byte) });
  return byte === 1;
}

function readArray(cursor: Cursor, field: string, depth: number): MetadataArray {
  if (depth > MAX_ARRAY_DEPTH) {
    const expected = `arrays at most ${MAX_ARRAY_DEPTH} deep`;
    throw badFile(cursor, { field, at: cursor.at, expected, found: "another level" });
  }
  const type = readU32(cursor, field);
  const typeAt = cursor.at - 4;
  const at = cursor.at;
  const count = readCount(cursor, field, Number.MAX_SAFE_INTEGER);
  const numbers = numberTypeOf(type);
  const itemBytes = numbers?.array.BYTES_PER_ELEMENT ?? MIN_BYTES[type];
  if (itemBytes === undefined) {
    throw badFile(cursor, { field, at: typeAt, expected: "an item type from 0 to 12", found: String(type) });
  }
  const left = cursor.bytes.length - cursor.at;
  if (count * itemBytes > left) {
    const expected = `at most the ${Math.floor(left / itemBytes)} items that fit the rest of the file`;
    throw badFile(cursor, { field, at, expected, found: String(count) });
  }
  if (numbers) return readNumbers(cursor, field, { type: numbers, count });
  if (type === ARRAY) cursor.nestedCount += count;
  else cursor.itemCount += count;
  if (cursor.itemCount > MAX_LIST_ITEMS || cursor.nestedCount > MAX_NESTED_ARRAYS) {
    const expected = `at most ${MAX_LIST_ITEMS} strings and bools and ${MAX_NESTED_ARRAYS} nested arrays in all`;
    throw badFile(cursor, { field, at, expected, found: `${count} more` });
  }
  if (type === STRING) return readStrings(cursor, field, count);
  if (type === BOOL) return Array.from({ length: count }, () => readBool(cursor, field));
  return Array.from({ length: count }, () => readArray(cursor, field, depth + 1));
}

/** Fewest bytes of one array item that is not of fixed size in memory. */
const MIN_BYTES: Readonly<Record<number, number>> = { [BOOL]: 1, [STRING]: 8, [ARRAY]: 12 };

/** The hot loop of a header: a vocabulary and its merges are up to a million strings. */
function readStrings(cursor: Cursor, field: string, count: number): string[] {
  const { view, text, bytes } = cursor;
  const strings: string[] = []; // not `new Array(count)`, of which JavaScriptCore keeps large ones in a slower form
  for (let i = 0; i < count; i++) {
    const start = cursor.at + 8;
    const length = start <= bytes.length ? view.getUint32(start - 8, true) : Infinity;
    const end = start + length;
    if (end > bytes.length || length > MAX_STRING_BYTES || view.getUint32(start - 4, true) !== 0) {
      readString(cursor, `${field}, item ${i}`, MAX_STRING_BYTES); // throws, saying why
    }
    strings.push(text.toString("utf8", start, end));
    cursor.at = end;
  }
  return strings;
}

function alignmentOf(metadata: Metadata, path: string): number {
  const alignment = metadata.get("general.alignment") ?? DEFAULT_ALIGNMENT;
  if (typeof alignment === "number" && isPowerOfTwo(alignment) && alignment <= MAX_ALIGNMENT) return alignment;
  const expected = `a power of two up to ${MAX_ALIGNMENT}`;
  const found = typeof alignment === "object" ? "an array" : String(alignment);
  throw new AppError("bad_file", `${path}: metadata 'general.alignment': expected ${expected}, got ${found}`);
}

/** A tensor info as it stands in the file. */
interface TensorDraft {
  readonly name: string;
  readonly shape: readonly number[];
  readonly ggmlType: number;
  /** From the start of the data section. */
  readonly dataOffset: number;
  /** Where the info stands, for messages. */
  readonly at: number;
}

function readTensorDraft(cursor: Cursor, index: number): TensorDraft {
  const at = cursor.at;
  const name = readString(cursor, `name of tensor ${index}`, MAX_TENSOR_NAME_BYTES);
  const field = `tensor '${name}'`;
  const dims = readU32(cursor, field);
  if (dims < 1 || dims > MAX_DIMS) {
    throw badFile(cursor, { field, at: cursor.at - 4, expected: `1 to ${MAX_DIMS} dimensions`, found: String(dims) });
  }
  const shape: number[] = [];
  for (let i = 0; i < dims; i++) {
    const dim = `${field}, dimension ${i}`;
    const size = readCount(cursor, dim, Number.MAX_SAFE_INTEGER);
    if (size === 0) throw badFile(cursor, { field: dim, at: cursor.at - 8, expected: "at least 1", found: "0" });
    shape.push(size);
  }
  const ggmlType = readU32(cursor, field);
  return { name, shape, ggmlType, dataOffset: readCount(cursor, `${field}, offset`, Number.MAX_SAFE_INTEGER), at };
}

interface Placement {
  readonly cursor: Cursor;
  readonly alignment: number;
  readonly dataOffset: number;
  readonly fileBytes: number;
  readonly shard: number;
}

function placeTensors(drafts: readonly TensorDraft[], placement: Placement): Map<string, TensorInfo> {
  const tensors = new Map<string, TensorInfo>();
  for (const draft of drafts) {
    if (draft.name === "" || tensors.has(draft.name)) {
      const expected = "a new name for each tensor";
      throw badFile(placement.cursor, { field: `tensor '${draft.name}'`, at: draft.at, expected, found: "it again" });
    }
    tensors.set(draft.name, placeTensor(draft, placement));
  }
  checkOverlap([...tensors.values()], placement.cursor.path);
  return tensors;
}

function placeTensor(draft: TensorDraft, { cursor, alignment, dataOffset, fileBytes, shard }: Placement): TensorInfo {
  const { name, shape, at } = draft;
  const field = `tensor '${name}'`;
  const quant = quantOf(draft.ggmlType);
  if (!quant) throw new AppError("unsupported", `${cursor.path}: ${field}: ${unsupportedQuant(draft.ggmlType)}`);
  const rowLen = shape[0]!; // at least one dimension: checked where it was read
  if (rowLen % quant.blockLen !== 0) {
    const expected = `rows of whole ${quant.name} blocks of ${quant.blockLen}`;
    throw badFile(cursor, { field, at, expected, found: `rows of ${rowLen}` });
  }
  if (draft.dataOffset % alignment !== 0) {
    const expected = `an offset that is a multiple of ${alignment}`;
    throw badFile(cursor, { field, at, expected, found: String(draft.dataOffset) });
  }
  const rows = shape.slice(1).reduce((product, size) => product * size, 1);
  // Sizes too large to be exact are larger than any file, so the comparison below still holds.
  const byteLength = (rowLen / quant.blockLen) * quant.blockBytes * rows;
  const offset = dataOffset + draft.dataOffset;
  if (offset + byteLength > fileBytes) {
    const expected = `its ${byteLength} bytes inside the file's ${fileBytes}`;
    throw badFile(cursor, { field, at, expected, found: `an end at ${offset + byteLength}: truncated or damaged` });
  }
  return { name, shape, quant, byteLength, shard, offset };
}

function checkOverlap(tensors: TensorInfo[], path: string): void {
  tensors.sort((a, b) => a.offset - b.offset);
  let previous: TensorInfo | undefined;
  for (const tensor of tensors) {
    const end = previous ? previous.offset + previous.byteLength : 0;
    if (tensor.offset < end) {
      const expected = `tensor '${tensor.name}' after the end of '${previous?.name}' at byte ${end}`;
      throw new AppError("bad_file", `${path}: expected ${expected}, got byte ${tensor.offset}: they overlap`);
    }
    previous = tensor;
  }
}

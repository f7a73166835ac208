/**
 * GGUF header → metadata and tensor infos, without I/O. Format: gguf.md in ggml's docs; limits are gguf.cpp's or
 * tighter.
 *
 * The bytes are untrusted: every count is compared with a named limit and with the remaining bytes before anything is
 * allocated for it, so that memory stays in proportion to the file.
 *
 * One parser serves complete bytes (`parseGguf`) and bytes that arrive in pieces (`header.ts`): a generator that stops
 * when the window of its cursor is short, and yields the number of bytes it needs.
 */
import { alignUp, isPowerOfTwo } from "../bytes.ts";
import { AppError } from "../../../base/index.ts";
import { badFile, isShort, makeCursor, readCount, readString, readText, readU32, take, type Cursor } from "./cursor.ts";
import type { Metadata, MetadataArray, MetadataValue, TensorInfo } from "./gguf.ts";
import { placeTensors, type RawTensorInfo } from "./place-tensors.ts";
import { makeTexts, type Texts, type TextsMaker } from "./texts.ts";
import { ARRAY, BOOL, numberTypeOf, STRING, type NumberType } from "./value-types.ts";

const MAGIC = 0x46554747; // "GGUF", little-endian
const DEFAULT_ALIGNMENT = 32; // GGUF_DEFAULT_ALIGNMENT

/** The largest known header has 16 MB (Gemma 4's vocabulary); nothing after this limit is read as part of a header. */
export const MAX_HEADER_BYTES = 256 * 2 ** 20;
/** Metadata entries. Real models have 20 to 60. */
const MAX_KEYS = 65_536;
/** The format's own limit. */
const MAX_KEY_BYTES = 65_535;
/** The longest known strings are chat templates of under 100 kB and licences of under 1 MB. */
const MAX_STRING_BYTES = 16 * 2 ** 20;
/**
 * Total items of string and bool arrays, because each takes more memory than bytes in the file. Gemma 4 has 777
 * thousand.
 */
const MAX_LIST_ITEMS = 4 * 2 ** 20;
/** Nested arrays, which no known model has; an empty one takes ten times its bytes in the file. */
const MAX_NESTED_ARRAYS = 4096;
/** Maximum nesting of arrays. */
const MAX_ARRAY_DEPTH = 4;
/** Tensors of one file. Deep mixture-of-experts models with unmerged experts have some ten thousand. */
const MAX_TENSORS = 65_536;
/** ggml stops at 63; forks for image models go to 127. */
const MAX_TENSOR_NAME_BYTES = 255;
/** GGML_MAX_DIMS */
const MAX_DIMS = 4;
/** Padding is never useful beyond a huge page. */
const MAX_ALIGNMENT = 2 * 2 ** 20;

/** Magic, version and two counts. */
const FIXED_BYTES = 24;
/** A value's type, and a number or bool. */
const MAX_SCALAR_BYTES = 12;
/** Item type and count. */
const ARRAY_HEAD_BYTES = 12;
/** Name, dimensions, block type and offset. */
const MAX_TENSOR_BYTES = 8 + MAX_TENSOR_NAME_BYTES + 4 + 8 * MAX_DIMS + 4 + 8;

export interface Header {
  readonly version: 2 | 3;
  readonly metadata: Metadata;
  /** The keys that were requested as bytes. */
  readonly texts: ReadonlyMap<string, Texts>;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** Where tensor data begins, in bytes. */
  readonly dataOffset: number;
}

export interface ParseOptions {
  /** Size of the whole file, if `bytes` is only its beginning. */
  readonly fileBytes?: number;
  /** Index of the shard that has these tensors. */
  readonly shard?: number;
  /** Longer arrays are skipped, and are empty in the metadata; a function: limit by key. */
  readonly arrayItemsMax?: ArrayItemsMax;
  /** Keys whose strings stay bytes, and are empty in the metadata. */
  readonly asTexts?: readonly string[];
}

export type ArrayItemsMax = number | ((key: string) => number);

/**
 * A parser that yields the number of bytes it needs next. It continues when they are in the window, or when the header
 * has ended: then it throws.
 */
export type Steps<T> = Generator<number, T, void>;

/**
 * Reads a header.
 * @param path only for messages
 * Throws `bad_file` naming field, offset, expected and actual value, or `unsupported` for block types that we cannot
 * read.
 */
export function parseGguf(bytes: Uint8Array, path: string, options: ParseOptions = {}): Header {
  const cursor = makeCursor(bytes, path);
  const steps = headerSteps(cursor, { ...options, fileBytes: options.fileBytes ?? bytes.length });
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/** Reads a header from a cursor whose window moves. Throws as `parseGguf` does. */
export function* headerSteps(cursor: Cursor, options: ParseOptions & { fileBytes: number }): Steps<Header> {
  const { fileBytes, shard = 0, arrayItemsMax = Infinity, asTexts = [] } = options;
  if (isShort(cursor, FIXED_BYTES)) yield FIXED_BYTES;
  const version = readVersion(cursor);
  const tensorCount = readCount(cursor, "tensor count", MAX_TENSORS);
  const keyCount = readCount(cursor, "metadata count", MAX_KEYS);
  const { metadata, texts } = yield* readMetadata(cursor, { count: keyCount, arrayItemsMax, asTexts });
  const alignment = alignmentOf(metadata, cursor.path);
  const infos: RawTensorInfo[] = [];
  for (let i = 0; i < tensorCount; i++) {
    if (isShort(cursor, MAX_TENSOR_BYTES)) yield MAX_TENSOR_BYTES;
    infos.push(readTensorInfo(cursor, i));
  }
  const dataOffset = alignUp(cursor.at, alignment);
  const tensors = placeTensors(infos, { cursor, alignment, dataOffset, fileBytes, shard });
  return { version, metadata, texts, tensors, dataOffset };
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

interface MetadataPlan {
  readonly count: number;
  readonly arrayItemsMax: ArrayItemsMax;
  readonly asTexts: readonly string[];
}

function* readMetadata(cursor: Cursor, plan: MetadataPlan): Steps<Pick<Header, "metadata" | "texts">> {
  const { count, arrayItemsMax, asTexts } = plan;
  const metadata = new Map<string, MetadataValue>();
  const texts = new Map<string, Texts>();
  for (let i = 0; i < count; i++) {
    const at = cursor.at;
    const key = yield* readLongString(cursor, `metadata key ${i}`, MAX_KEY_BYTES);
    if (key === "" || metadata.has(key)) {
      const found = key === "" ? "an empty one" : `'${key}' again`;
      throw badFile(cursor, { field: `metadata key ${i}`, at, expected: "a new name", found });
    }
    const field = `metadata '${key}'`;
    if (isShort(cursor, MAX_SCALAR_BYTES)) yield MAX_SCALAR_BYTES;
    const type = readU32(cursor, field);
    if (type === STRING) metadata.set(key, yield* readLongString(cursor, field, MAX_STRING_BYTES));
    else if (type === ARRAY) {
      const most = typeof arrayItemsMax === "number" ? arrayItemsMax : arrayItemsMax(key);
      const keepTexts = asTexts.includes(key) ? (list: Texts): void => void texts.set(key, list) : undefined;
      metadata.set(key, yield* readArray(cursor, field, { depth: 1, arrayItemsMax: most, keepTexts }));
    } else metadata.set(key, readScalar(cursor, field, type));
  }
  return { metadata, texts };
}

function* readLongString(cursor: Cursor, field: string, maxBytes: number): Steps<string> {
  if (isShort(cursor, 8)) yield 8;
  const length = readCount(cursor, `length of ${field}`, maxBytes);
  if (isShort(cursor, length)) yield length;
  return readText(cursor, field, length);
}

function readScalar(cursor: Cursor, field: string, typeId: number): MetadataValue {
  if (typeId === BOOL) return readBool(cursor, field);
  const type = numberTypeOf(typeId);
  if (!type) {
    throw badFile(cursor, { field, at: cursor.at - 4, expected: "a value type from 0 to 12", found: String(typeId) });
  }
  const start = take(cursor, type.array.BYTES_PER_ELEMENT, field);
  // A copy, because the file does not align its values
  const bytes = cursor.bytes.slice(start, start + type.array.BYTES_PER_ELEMENT);
  return narrow(new type.array(bytes.buffer)[0]!); // the array has one item
}

type NumberArray = Extract<MetadataArray, ArrayBufferView>;

/** A copy, because metadata outlives the window. The caller has checked that the file has this many. */
function* readNumbers(cursor: Cursor, field: string, plan: { type: NumberType; count: number }): Steps<NumberArray> {
  const numbers = new plan.type.array(plan.count);
  const bytes = new Uint8Array(numbers.buffer);
  for (let done = 0; done < bytes.length;) {
    if (isShort(cursor, 1)) yield 1;
    const length = Math.min(bytes.length - done, cursor.start + cursor.bytes.length - cursor.at);
    const start = take(cursor, length, field);
    bytes.set(cursor.bytes.subarray(start, start + length), done);
    done += length;
  }
  return numbers;
}

function narrow(value: number | bigint): number | bigint {
  const number = Number(value);
  return typeof value === "number" || Number.isSafeInteger(number) ? number : value;
}

function readBool(cursor: Cursor, field: string): boolean {
  const { at } = cursor;
  const byte = cursor.bytes[take(cursor, 1, field)]!; // in range: `take` has checked it
  if (byte > 1) throw badFile(cursor, { field, at, expected: "0 or 1 for a bool", found: String(byte) });
  return byte === 1;
}

interface ArrayPlan {
  /** 1 for a top-level array. */
  readonly depth: number;
  readonly arrayItemsMax: number;
  /** Receives strings as bytes. */
  readonly keepTexts?: ((list: Texts) => void) | undefined;
}

function* readArray(cursor: Cursor, field: string, plan: ArrayPlan): Steps<MetadataArray> {
  const { depth, arrayItemsMax, keepTexts } = plan;
  if (depth > MAX_ARRAY_DEPTH) {
    const expected = `arrays at most ${MAX_ARRAY_DEPTH} deep`;
    throw badFile(cursor, { field, at: cursor.at, expected, found: "another level" });
  }
  if (isShort(cursor, ARRAY_HEAD_BYTES)) yield ARRAY_HEAD_BYTES;
  const type = readU32(cursor, field);
  const count = readItemCount(cursor, field, type);
  const keep = count <= arrayItemsMax;
  const numbers = numberTypeOf(type);
  if (numbers) {
    if (keep) return yield* readNumbers(cursor, field, { type: numbers, count });
    take(cursor, count * numbers.array.BYTES_PER_ELEMENT, field);
    return new numbers.array(0);
  }
  if (type === STRING && keep && keepTexts) {
    keepTexts(yield* readTexts(cursor, field, count));
    return [];
  }
  if (type === STRING) return yield* readStrings(cursor, field, { count, keep });
  if (type === BOOL) return yield* readBools(cursor, field, { count, keep });
  const arrays: MetadataArray[] = [];
  for (let i = 0; i < count; i++) arrays.push(yield* readArray(cursor, field, { depth: depth + 1, arrayItemsMax }));
  return keep ? arrays : [];
}

/** The number of items of an array, checked against the rest of the header and the limits. */
function readItemCount(cursor: Cursor, field: string, type: number): number {
  const { at } = cursor;
  const count = readCount(cursor, field, Number.MAX_SAFE_INTEGER);
  const numbers = numberTypeOf(type);
  const itemBytes = numbers?.array.BYTES_PER_ELEMENT ?? MIN_BYTES[type];
  if (itemBytes === undefined) {
    throw badFile(cursor, { field, at: at - 4, expected: "an item type from 0 to 12", found: String(type) });
  }
  const left = cursor.end - cursor.at;
  if (count * itemBytes > left) {
    const expected = `at most the ${Math.floor(left / itemBytes)} items that fit the rest of the file`;
    throw badFile(cursor, { field, at, expected, found: String(count) });
  }
  if (type === ARRAY) cursor.nestedCount += count;
  else if (!numbers) cursor.itemCount += count;
  if (cursor.itemCount > MAX_LIST_ITEMS || cursor.nestedCount > MAX_NESTED_ARRAYS) {
    const expected = `at most ${MAX_LIST_ITEMS} strings and bools and ${MAX_NESTED_ARRAYS} nested arrays in all`;
    throw badFile(cursor, { field, at, expected, found: `${count} more` });
  }
  return count;
}

/** Minimum bytes of an array item of variable size. */
const MIN_BYTES: Readonly<Record<number, number>> = { [BOOL]: 1, [STRING]: 8, [ARRAY]: ARRAY_HEAD_BYTES };

/** The number of items, and true if the caller wants them. */
interface ListPlan {
  readonly count: number;
  readonly keep: boolean;
}

function* readBools(cursor: Cursor, field: string, { count, keep }: ListPlan): Steps<boolean[]> {
  const bools: boolean[] = [];
  for (let i = 0; i < count; i++) {
    if (isShort(cursor, 1)) yield 1;
    const value = readBool(cursor, field);
    if (keep) bools.push(value);
  }
  return bools;
}

function* readStrings(cursor: Cursor, field: string, { count, keep }: ListPlan): Steps<string[]> {
  const strings: string[] = []; // not `new Array(count)`: JavaScriptCore keeps large ones in a slower form
  for (let i = 0; i < count; i++) {
    i += readWhole(cursor, count - i, keep ? strings : undefined);
    if (i === count) break;
    // The window ends within this string, or the string is too long, which throws.
    if (keep) strings.push(yield* readLongString(cursor, `${field}, item ${i}`, MAX_STRING_BYTES));
    else yield* skipString(cursor, `${field}, item ${i}`);
  }
  return strings;
}

/**
 * Reads up to `max` strings that are complete in the window, or only skips them; returns their number. The hot loop of
 * a header: a vocabulary and its merges are up to a million strings. Lengths are read byte by byte, because a DataView
 * is slow until a loop has run for long.
 */
function readWhole(cursor: Cursor, max: number, strings: string[] | undefined): number {
  const { bytes, decoder, start } = cursor;
  const last = bytes.length - 8;
  let at = cursor.at - start;
  let count = 0;
  for (; count < max && at <= last; count++) {
    // Up to `last` there are at least 8 bytes
    const length = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16);
    const end = at + 8 + length;
    const isLong = bytes[at + 3]! | bytes[at + 4]! | bytes[at + 5]! | bytes[at + 6]! | bytes[at + 7]!;
    if (isLong !== 0 || end > bytes.length) break;
    strings?.push(decoder.decode(bytes.subarray(at + 8, end)));
    at = end;
  }
  cursor.at = start + at;
  return count;
}

/** As `readStrings`, but copies the bytes. */
function* readTexts(cursor: Cursor, field: string, count: number): Steps<Texts> {
  const texts = makeTexts(count);
  for (let i = 0; i < count; i++) {
    i += copyWhole(cursor, count - i, texts);
    if (i === count) break;
    if (isShort(cursor, 8)) yield 8;
    const item = `${field}, item ${i}`;
    const length = readCount(cursor, `length of ${item}`, MAX_STRING_BYTES);
    if (isShort(cursor, length)) yield length;
    const from = take(cursor, length, item);
    const start = texts.append(cursor.bytes.subarray(from, from + length));
    texts.add(start, start + length);
  }
  return texts.finish();
}

/** As `readWhole`, and as critical for speed: copies the rest of the window, lengths included. */
function copyWhole(cursor: Cursor, max: number, texts: TextsMaker): number {
  const { bytes, start } = cursor;
  const from = cursor.at - start;
  const moved = texts.append(bytes.subarray(from)) - from;
  const last = bytes.length - 8;
  let at = from;
  let count = 0;
  for (; count < max && at <= last; count++) {
    const length = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16);
    const end = at + 8 + length;
    const isLong = bytes[at + 3]! | bytes[at + 4]! | bytes[at + 5]! | bytes[at + 6]! | bytes[at + 7]!;
    if (isLong !== 0 || end > bytes.length) break;
    texts.add(moved + at + 8, moved + end);
    at = end;
  }
  cursor.at = start + at;
  return count;
}

function* skipString(cursor: Cursor, field: string): Steps<void> {
  if (isShort(cursor, 8)) yield 8;
  take(cursor, readCount(cursor, `length of ${field}`, MAX_STRING_BYTES), field);
}

function alignmentOf(metadata: Metadata, path: string): number {
  const alignment = metadata.get("general.alignment") ?? DEFAULT_ALIGNMENT;
  if (typeof alignment === "number" && isPowerOfTwo(alignment) && alignment <= MAX_ALIGNMENT) return alignment;
  const expected = `a power of two up to ${MAX_ALIGNMENT}`;
  const found = typeof alignment === "object" ? "an array" : String(alignment);
  throw new AppError("bad_file", `${path}: metadata 'general.alignment': expected ${expected}, got ${found}`);
}

function readTensorInfo(cursor: Cursor, index: number): RawTensorInfo {
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

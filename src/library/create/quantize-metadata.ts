/**
 * Converts a model's metadata for the GGUF writer. Parsed metadata has lost each number's GGUF type, and readers are
 * strict about it, so the header is parsed again for the types alone.
 */
import {
  ARRAY,
  BOOL,
  type Cursor,
  makeCursor,
  type Metadata,
  type NumberTypeName,
  numberTypeOf,
  numberTypes,
  readCount,
  readString,
  readU32,
  STRING,
  take,
  type WriteValue,
} from "../../engine/formats/index.ts";

/** Offset of the tensor count, after magic and version. */
const COUNTS_AT = 8;

/**
 * @param header at least all metadata of the file that `metadata` was parsed from, so its counts and lengths are valid
 */
export function writableMetadata(header: Uint8Array, metadata: Metadata, path: string): Record<string, WriteValue> {
  const cursor = makeCursor(header, path);
  cursor.at = COUNTS_AT;
  readCount(cursor, "tensor count", Number.MAX_SAFE_INTEGER);
  const keyCount = readCount(cursor, "metadata count", metadata.size);
  const values: [string, WriteValue][] = [];
  for (let i = 0; i < keyCount; i++) {
    const key = readString(cursor, "key", header.length);
    const type = readU32(cursor, "value type");
    skipValue(cursor, type);
    const value = metadata.get(key)!; // the parser read the same bytes
    // The cast is safe: the name is that of one number type.
    if (typeof value !== "number" && typeof value !== "bigint") values.push([key, value]);
    else values.push([key, { [numberName(type)]: value } as Extract<WriteValue, { u32: unknown }>]);
  }
  return Object.fromEntries(values);
}

function numberName(type: number): NumberTypeName {
  const names = Object.keys(numberTypes) as NumberTypeName[]; // the keys of that table
  return names.find((name) => numberTypes[name].id === type)!; // a number has a number type
}

function skipValue(cursor: Cursor, type: number): void {
  if (type === STRING) take(cursor, readCount(cursor, "length", cursor.bytes.length), "string");
  else if (type === ARRAY) skipArray(cursor);
  else take(cursor, fixedSize(type)!, "value"); // the parser refuses unknown types
}

function skipArray(cursor: Cursor): void {
  const type = readU32(cursor, "item type");
  const count = readCount(cursor, "array length", cursor.bytes.length);
  const size = fixedSize(type);
  if (size !== undefined) take(cursor, count * size, "array");
  else for (let i = 0; i < count; i++) skipValue(cursor, type);
}

function fixedSize(type: number): number | undefined {
  return type === BOOL ? 1 : numberTypeOf(type)?.array.BYTES_PER_ELEMENT;
}

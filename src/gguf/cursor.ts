/**
 * Reads little-endian fields of a header one after the other. Every read is checked against the end of the bytes, and
 * an error names file, field, byte offset, expected and found.
 */
import { AppError } from "../base/errors.ts";

export interface Cursor {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly text: Buffer;
  /** Offset of the next field. */
  at: number;
  /** Items of string and bool arrays so far; see `MAX_LIST_ITEMS`. */
  itemCount: number;
  /** Arrays inside arrays so far; see `MAX_NESTED_ARRAYS`. */
  nestedCount: number;
}

export function makeCursor({ buffer, byteOffset, byteLength }: Uint8Array, path: string): Cursor {
  return {
    path,
    bytes: new Uint8Array(buffer, byteOffset, byteLength), // never a Buffer, whose slice() does not copy
    view: new DataView(buffer, byteOffset, byteLength),
    text: Buffer.from(buffer, byteOffset, byteLength),
    at: 0,
    itemCount: 0,
    nestedCount: 0,
  };
}

export interface Mismatch {
  readonly field: string;
  readonly at: number;
  readonly expected: string;
  readonly found: string;
}

export function badFile(cursor: Cursor, { field, at, expected, found }: Mismatch): AppError {
  return new AppError("bad_file", `${cursor.path}: ${field} at byte ${at}: expected ${expected}, got ${found}`);
}

/** Steps over `length` bytes and returns where they start. */
export function take(cursor: Cursor, length: number, field: string): number {
  const at = cursor.at;
  if (length > cursor.bytes.length - at) {
    const found = `${cursor.bytes.length - at} before the end at byte ${cursor.bytes.length}`;
    throw badFile(cursor, { field, at, expected: `${length} bytes`, found });
  }
  cursor.at = at + length;
  return at;
}

export function readU32(cursor: Cursor, field: string): number {
  return cursor.view.getUint32(take(cursor, 4, field), true);
}

/** A 64-bit count, size or offset. Throws over `max`, which is at most 2^53 − 1. */
export function readCount(cursor: Cursor, field: string, max: number): number {
  const at = take(cursor, 8, field);
  const count = cursor.view.getUint32(at + 4, true) * 2 ** 32 + cursor.view.getUint32(at, true); // ≥ 2^53 may round, up
  if (count <= max) return count;
  throw badFile(cursor, { field, at, expected: `at most ${max}`, found: String(cursor.view.getBigUint64(at, true)) });
}

/** A length-prefixed UTF-8 string. Bytes that are no UTF-8 become U+FFFD; a leading byte order mark is kept. */
export function readString(cursor: Cursor, field: string, maxBytes: number): string {
  const length = readCount(cursor, `length of ${field}`, maxBytes);
  const at = take(cursor, length, field);
  return cursor.text.toString("utf8", at, at + length);
}

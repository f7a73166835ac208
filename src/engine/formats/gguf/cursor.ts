/**
 * Reads little-endian fields of a header in sequence. Every read is checked against the end of the header; errors name
 * file, field, byte offset, expected and actual value. A window of the header, or all of it, is in memory: readers call
 * `isShort` first, and the feeder of the cursor then moves the window.
 */
import { AppError } from "../../../base/index.ts";

export interface Cursor {
  readonly path: string;
  /** Maximum end of the header in the file. */
  readonly end: number;
  /** Offset in the file of the window's first byte. */
  start: number;
  /** The window, in two forms. */
  bytes: Uint8Array;
  view: DataView;
  readonly decoder: TextDecoder;
  /** Offset in the file of the next field; beyond the window after a skipped value. */
  at: number;
  /** Items of string and bool arrays so far; see `MAX_LIST_ITEMS`. */
  itemCount: number;
  /** Nested arrays so far; see `MAX_NESTED_ARRAYS`. */
  nestedCount: number;
}

/** A cursor at the start of a header that begins with `bytes`; `end` is given if these are not the whole header. */
export function makeCursor(bytes: Uint8Array, path: string, end: number = bytes.length): Cursor {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return { path, end, start: 0, ...windowOf(bytes), decoder, at: 0, itemCount: 0, nestedCount: 0 };
}

/** Makes the window begin at the next field. */
export function moveWindow(cursor: Cursor, bytes: Uint8Array): void {
  Object.assign(cursor, windowOf(bytes), { start: cursor.at });
}

function windowOf({ buffer, byteOffset, byteLength }: Uint8Array): Pick<Cursor, "bytes" | "view"> {
  return {
    bytes: new Uint8Array(buffer, byteOffset, byteLength), // never a Buffer, whose slice() does not copy
    view: new DataView(buffer, byteOffset, byteLength),
  };
}

/** Returns whether the window ends before the next `length` bytes do. */
export function isShort(cursor: Cursor, length: number): boolean {
  return length > cursor.start + cursor.bytes.length - cursor.at;
}

interface Mismatch {
  readonly field: string;
  readonly at: number;
  readonly expected: string;
  readonly found: string;
}

export function badFile(cursor: Cursor, { field, at, expected, found }: Mismatch): AppError {
  return new AppError("bad_file", `${cursor.path}: ${field} at byte ${at}: expected ${expected}, got ${found}`);
}

/** Skips `length` bytes and returns their start in the window. */
export function take(cursor: Cursor, length: number, field: string): number {
  const at = cursor.at;
  if (length > cursor.end - at) {
    const found = `${cursor.end - at} before the end at byte ${cursor.end}`;
    throw badFile(cursor, { field, at, expected: `${length} bytes`, found });
  }
  cursor.at = at + length;
  return at - cursor.start;
}

export function readU32(cursor: Cursor, field: string): number {
  return cursor.view.getUint32(take(cursor, 4, field), true);
}

/** A 64-bit count, size or offset. Throws over `max`, which is at most 2^53 − 1. */
export function readCount(cursor: Cursor, field: string, max: number): number {
  const { at, view } = cursor;
  const i = take(cursor, 8, field);
  // From 2^53 on, rounding is always upwards
  const count = view.getUint32(i + 4, true) * 2 ** 32 + view.getUint32(i, true);
  if (count <= max) return count;
  throw badFile(cursor, { field, at, expected: `at most ${max}`, found: String(view.getBigUint64(i, true)) });
}

/** A length-prefixed UTF-8 string. Invalid UTF-8 becomes U+FFFD; a leading byte order mark is kept. */
export function readString(cursor: Cursor, field: string, maxBytes: number): string {
  return readText(cursor, field, readCount(cursor, `length of ${field}`, maxBytes));
}

/** The text of a string whose length was read. */
export function readText(cursor: Cursor, field: string, length: number): string {
  const i = take(cursor, length, field);
  return cursor.decoder.decode(cursor.bytes.subarray(i, i + length));
}

/**
 * JSON of large values: a model's vocabulary has a million items, and `JSON.stringify` of it would block every other
 * request. This writes a little at a time and yields to the event loop in between.
 */
import { setImmediate } from "node:timers/promises";
import { AppError } from "../../base/index.ts";

/** List items written by one call: strings of a metadata array have at most 16 MB, and usually 10 bytes. */
const SLICE_ITEMS = 64;
/** Text is encoded in parts of this size, in UTF-16 units. */
const PART_LENGTH = 64 * 1024;
/** Milliseconds until it yields. */
const TURN_MS = 4;

/**
 * The JSON text of a value, in UTF-8: equal to `JSON.stringify`, with typed arrays as lists. Throws `cancelled` if the
 * client disconnected.
 */
export async function encodeJson(value: unknown, signal: AbortSignal): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const encoder = new TextEncoder();
  let text = "";
  let turnMs = performance.now();
  for (const piece of jsonPieces(value)) {
    text += piece;
    if (text.length >= PART_LENGTH) {
      parts.push(encoder.encode(text));
      text = "";
    }
    if (performance.now() - turnMs < TURN_MS) continue;
    await setImmediate();
    checkPresent(signal);
    turnMs = performance.now();
  }
  return new Blob([...parts, encoder.encode(text)]);
}

/** Throws `cancelled` if the client disconnected. */
export function checkPresent(signal: AbortSignal): void {
  if (signal.aborted) throw new AppError("cancelled", "the client went away");
}

/** The text of a value, in pieces that are short unless they contain a long string. */
export function* jsonPieces(value: unknown): Generator<string, void, void> {
  if (isList(value)) {
    yield "[";
    for (let i = 0; i < value.length; i += SLICE_ITEMS) {
      const slice = value.slice(i, i + SLICE_ITEMS);
      if (i > 0) yield ",";
      if (slice.some(isComposite)) yield* joined(slice);
      else yield JSON.stringify(Array.from(slice, jsonItem)).slice(1, -1);
    }
    yield "]";
  } else if (isComposite(value)) {
    yield "{";
    let comma = "";
    for (const [key, item] of Object.entries(value)) {
      if (item === undefined) continue;
      yield `${comma}${JSON.stringify(key)}:`;
      yield* jsonPieces(item);
      comma = ",";
    }
    yield "}";
  } else {
    yield JSON.stringify(value ?? null);
  }
}

function* joined(items: readonly unknown[]): Generator<string, void, void> {
  for (const [i, item] of items.entries()) {
    if (i > 0) yield ",";
    yield* jsonPieces(item);
  }
}

const isComposite = (value: unknown): value is object => typeof value === "object" && value !== null;

const jsonItem = (item: unknown): unknown =>
  typeof item === "number" || typeof item === "bigint" ? jsonNumber(item) : item;

/**
 * A number for JSON. Integers beyond 2^53 are rounded, as readers of JSON do. A float32 read as a double has a tail of
 * meaningless digits, and loses it: 1e-5 instead of 0.000009999999747378752.
 */
export function jsonNumber(value: number | bigint): number {
  if (typeof value === "bigint") return Number(value);
  if (Number.isInteger(value) || Math.fround(value) !== value) return value;
  return shortFloat(value);
}

/** Range in which the powers of ten below are exact in a double, and which a normal float32 can have. */
const [SIZE_MIN, SIZE_MAX] = [1e-13, 1e22];

/**
 * The shortest decimal that reads as this float32. Six digits are always distinct, so shorter ones follow from rounding
 * to six; nine are always enough. `toPrecision` takes ten times as long.
 */
function shortFloat(value: number): number {
  const size = Math.abs(value);
  const isOrdinary = size >= SIZE_MIN && size < SIZE_MAX;
  const exponent = Math.floor(Math.log10(size));
  for (let digits = isOrdinary ? 6 : 1; digits <= 9; digits++) {
    const short = isOrdinary ? rounded(value, digits - 1 - exponent) : Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

/** Rounds to `power` decimal places, or to tens, hundreds, … for a negative `power`. */
function rounded(value: number, power: number): number {
  const factor = 10 ** Math.abs(power);
  return power >= 0 ? Math.round(value * factor) / factor : Math.round(value / factor) * factor;
}

/** True for lists and typed arrays. */
function isList(value: unknown): value is unknown[] {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

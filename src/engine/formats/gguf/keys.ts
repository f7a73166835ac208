/** Typed access to GGUF metadata. Every getter throws `bad_file` naming key, expected and found. */
import { AppError } from "../../../base/index.ts";
import type { Metadata, MetadataValue } from "./gguf.ts";

/** A numeric array of any stored type; read-only by convention. */
export type Numbers =
  Uint8Array | Int8Array | Uint16Array | Int16Array | Uint32Array | Int32Array | Float32Array | Float64Array;

/** The value of a number key; a third argument is the default for an absent key. */
export function getNumber(metadata: Metadata, key: string): number;
export function getNumber<D>(metadata: Metadata, key: string, fallback: D): number | D;
export function getNumber(metadata: Metadata, key: string, ...fallback: unknown[]): unknown {
  const value = metadata.get(key);
  if (typeof value === "number") return value;
  return absent(value, { key, expected: "a number", fallback });
}

export function getString(metadata: Metadata, key: string): string;
export function getString<D>(metadata: Metadata, key: string, fallback: D): string | D;
export function getString(metadata: Metadata, key: string, ...fallback: unknown[]): unknown {
  const value = metadata.get(key);
  if (typeof value === "string") return value;
  return absent(value, { key, expected: "a string", fallback });
}

export function getBool(metadata: Metadata, key: string): boolean;
export function getBool<D>(metadata: Metadata, key: string, fallback: D): boolean | D;
export function getBool(metadata: Metadata, key: string, ...fallback: unknown[]): unknown {
  const value = metadata.get(key);
  if (typeof value === "boolean") return value;
  return absent(value, { key, expected: "a bool", fallback });
}

/** An array of numbers. 64-bit items become doubles. */
export function getNumbers(metadata: Metadata, key: string): Numbers;
export function getNumbers<D>(metadata: Metadata, key: string, fallback: D): Numbers | D;
export function getNumbers(metadata: Metadata, key: string, ...fallback: unknown[]): unknown {
  const value = metadata.get(key);
  if (value instanceof BigInt64Array || value instanceof BigUint64Array) return Float64Array.from(value, Number);
  if (ArrayBuffer.isView(value)) return value;
  return absent(value, { key, expected: "an array of numbers", fallback });
}

export function getStrings(metadata: Metadata, key: string): readonly string[];
export function getStrings<D>(metadata: Metadata, key: string, fallback: D): readonly string[] | D;
export function getStrings(metadata: Metadata, key: string, ...fallback: unknown[]): unknown {
  const value = metadata.get(key);
  // The items of an array have one type, so checking the first is enough.
  if (Array.isArray(value) && (value.length === 0 || typeof value[0] === "string")) return value;
  return absent(value, { key, expected: "an array of strings", fallback });
}

interface Expectation {
  readonly key: string;
  readonly expected: string;
  /** Empty, or the default for an absent key. */
  readonly fallback: readonly unknown[];
}

function absent(value: MetadataValue | undefined, { key, expected, fallback }: Expectation): unknown {
  if (value === undefined && fallback.length > 0) return fallback[0];
  throw new AppError("bad_file", `metadata '${key}': expected ${expected}, got ${describe(value)}`);
}

/** A short description of a metadata value. */
function describe(value: MetadataValue | undefined): string {
  if (value === undefined) return "nothing";
  if (ArrayBuffer.isView(value)) return `an array of ${value.length} numbers`;
  if (Array.isArray(value)) return `an array of ${value.length} × ${value.length > 0 ? typeof value[0] : "nothing"}`;
  if (typeof value === "string")
    return `the string ${JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)}`;
  return `the ${typeof value} ${value}`;
}

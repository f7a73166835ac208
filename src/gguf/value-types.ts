/**
 * The twelve scalar and string value types of GGUF metadata, and arrays: `gguf_metadata_value_type` in gguf.md. One table
 * serves the reader and the writer.
 */
export const STRING = 8;
export const ARRAY = 9;
export const BOOL = 7;

/** A value of fixed size. */
export interface FixedType {
  readonly name: string;
  readonly bytes: number;
  get(view: DataView, at: number): number | bigint;
  set(view: DataView, at: number, value: number | bigint): void;
  /** Array of the same layout in memory, on little-endian machines (all that Bun runs on). */
  readonly array: NumberArrayConstructor;
}

type NumberArrayConstructor =
  | typeof Uint8Array
  | typeof Int8Array
  | typeof Uint16Array
  | typeof Int16Array
  | typeof Uint32Array
  | typeof Int32Array
  | typeof Float32Array
  | typeof Float64Array
  | typeof BigInt64Array
  | typeof BigUint64Array;

const u8: FixedType = {
  name: "u8",
  bytes: 1,
  get: (view, at) => view.getUint8(at),
  set: (view, at, value) => view.setUint8(at, Number(value)),
  array: Uint8Array,
};
const i8: FixedType = {
  name: "i8",
  bytes: 1,
  get: (view, at) => view.getInt8(at),
  set: (view, at, value) => view.setInt8(at, Number(value)),
  array: Int8Array,
};
const u16: FixedType = {
  name: "u16",
  bytes: 2,
  get: (view, at) => view.getUint16(at, true),
  set: (view, at, value) => view.setUint16(at, Number(value), true),
  array: Uint16Array,
};
const i16: FixedType = {
  name: "i16",
  bytes: 2,
  get: (view, at) => view.getInt16(at, true),
  set: (view, at, value) => view.setInt16(at, Number(value), true),
  array: Int16Array,
};
const u32: FixedType = {
  name: "u32",
  bytes: 4,
  get: (view, at) => view.getUint32(at, true),
  set: (view, at, value) => view.setUint32(at, Number(value), true),
  array: Uint32Array,
};
const i32: FixedType = {
  name: "i32",
  bytes: 4,
  get: (view, at) => view.getInt32(at, true),
  set: (view, at, value) => view.setInt32(at, Number(value), true),
  array: Int32Array,
};
const f32: FixedType = {
  name: "f32",
  bytes: 4,
  get: (view, at) => view.getFloat32(at, true),
  set: (view, at, value) => view.setFloat32(at, Number(value), true),
  array: Float32Array,
};
const u64: FixedType = {
  name: "u64",
  bytes: 8,
  get: (view, at) => narrow(view.getBigUint64(at, true)),
  set: (view, at, value) => view.setBigUint64(at, BigInt(value), true),
  array: BigUint64Array,
};
const i64: FixedType = {
  name: "i64",
  bytes: 8,
  get: (view, at) => narrow(view.getBigInt64(at, true)),
  set: (view, at, value) => view.setBigInt64(at, BigInt(value), true),
  array: BigInt64Array,
};
const f64: FixedType = {
  name: "f64",
  bytes: 8,
  get: (view, at) => view.getFloat64(at, true),
  set: (view, at, value) => view.setFloat64(at, Number(value), true),
  array: Float64Array,
};

/** By type id. */
export const FIXED: Readonly<Record<number, FixedType>> = {
  0: u8,
  1: i8,
  2: u16,
  3: i16,
  4: u32,
  5: i32,
  6: f32,
  10: u64,
  11: i64,
  12: f64,
};

function narrow(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

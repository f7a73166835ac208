/**
 * The value types of GGUF metadata: `gguf_metadata_value_type` in gguf.md. One table serves the reader and the writer.
 */

/** A number type: a scalar is stored like an array of one, little-endian like every machine that Bun runs on. */
export interface NumberType {
  readonly id: number;
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

export const numberTypes = {
  u8: { id: 0, array: Uint8Array },
  i8: { id: 1, array: Int8Array },
  u16: { id: 2, array: Uint16Array },
  i16: { id: 3, array: Int16Array },
  u32: { id: 4, array: Uint32Array },
  i32: { id: 5, array: Int32Array },
  f32: { id: 6, array: Float32Array },
  u64: { id: 10, array: BigUint64Array },
  i64: { id: 11, array: BigInt64Array },
  f64: { id: 12, array: Float64Array },
} as const satisfies Record<string, NumberType>;

export type NumberTypeName = keyof typeof numberTypes;

export const BOOL = 7;
export const STRING = 8;
export const ARRAY = 9;

export function numberTypeOf(id: number): NumberType | undefined {
  for (const type of Object.values(numberTypes)) if (type.id === id) return type;
  return undefined;
}

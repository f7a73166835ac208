/**
 * Half floats (IEEE 754 binary16) as 16-bit patterns. `Float16Array` converts aligned data in bulk; this module reads
 * single scales at odd offsets inside quantization blocks.
 */

/** The value of a binary16 pattern, which is exact. */
export function halfToFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24; // zero and subnormals
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (1024 + fraction) * (1 << exponent) * 2 ** -25; // exponent bias 15, fraction of 10 bits
}

/** The nearest binary16 pattern, ties to even; over 65504 it is infinity, and every NaN becomes 0x7e00. */
export function floatToHalf(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const rounded = Math.f16round(value);
  const sign = rounded < 0 || Object.is(rounded, -0) ? 0x8000 : 0;
  const size = Math.abs(rounded);
  if (size === Infinity) return sign | 0x7c00;
  if (size < 2 ** -14) return sign | (size * 2 ** 24);
  const exponent = Math.floor(Math.log2(size)); // exact: a half differs from the next power of two by at least 2^-11
  return sign | ((exponent + 15) << 10) | (size * 2 ** (10 - exponent) - 1024);
}

/** The half float stored little-endian at byte `at`, any alignment. */
export function halfAt(bytes: Uint8Array, at: number): number {
  return halfToFloat(bytes[at]! | (bytes[at + 1]! << 8));
}

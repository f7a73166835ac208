/** Weights and other values that bench/real/originals.py makes too, from a name. */

/** Values around `middle`, in the precision of float16. */
export function valuesOf(
  name: string,
  count: number,
  { middle, width }: { middle: number; width: number },
): Float32Array<ArrayBuffer> {
  const seed = Bun.hash.crc32(name);
  return Float32Array.from({ length: count }, (_, i) =>
    Math.f16round(middle + width * (hashed(seed + i) / 2 ** 31 - 1)),
  );
}

/** The last step of MurmurHash 3. */
export function hashed(seed: number): number {
  let x = seed >>> 0;
  x ^= x >>> 16;
  x = Math.imul(x, 0x85ebca6b);
  x ^= x >>> 13;
  x = Math.imul(x, 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}

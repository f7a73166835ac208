/**
 * The candidates that a device must return for given logits, by sorting all of them; and logits that are hard to sort.
 */
import fc from "fast-check";
import type { TopK, TopKRequest } from "../../../../src/engine/text/sampling/top-k.ts";

/** The k likeliest that are not masked, the lower id among equals, then the masked ones. */
export function topKOf(logits: Float32Array, { k, masked }: TopKRequest): TopK {
  const away = new Set(masked);
  const others = [...logits.keys()].filter((id) => !away.has(id));
  const best = others.toSorted((a, b) => logits[b]! - logits[a]! || a - b).slice(0, k);
  const ids = Int32Array.from([...best, ...masked]);
  return { ids, logits: Float32Array.from(ids, (id) => logits[id]!) };
}

/** Random logits: all different, of few values, with both zeros, denormal or as large as floats get. */
export function arbitraryLogits(length: { min: number; max: number }): fc.Arbitrary<Float32Array> {
  const values = [
    fc.float({ min: -30, max: 30, noNaN: true }),
    fc.constantFrom(0, -0, 1),
    fc.constantFrom(-2, -1, -0, 0, 0.5),
    fc.float({ noNaN: true, noDefaultInfinity: true }),
  ].map((each) => each.map(Math.fround));
  const sizes = { minLength: length.min, maxLength: length.max, size: "max" } as const;
  return fc.oneof(...values.map((value) => fc.array(value, sizes))).map((list) => Float32Array.from(list));
}

/** Walks into values of which nothing is certain, by own properties alone. */

/** Undefined where the keys lead nowhere; nothing is found on a prototype. */
export function ownValue(value: unknown, keys: readonly (string | number)[]): unknown {
  let inner = value;
  for (const key of keys) {
    if (typeof inner !== "object" || inner === null || !Object.hasOwn(inner, key)) return undefined;
    inner = (inner as Record<string | number, unknown>)[key]; // own, as just checked
  }
  return inner;
}

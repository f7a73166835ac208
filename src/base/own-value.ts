/** Walks into untrusted values, by own properties alone. */

/** Undefined if the keys lead nowhere; prototypes are not searched. */
export function ownValue(value: unknown, keys: readonly (string | number)[]): unknown {
  let inner = value;
  for (const key of keys) {
    if (typeof inner !== "object" || inner === null || !Object.hasOwn(inner, key)) return undefined;
    inner = (inner as Record<string | number, unknown>)[key]; // own, as checked above
  }
  return inner;
}

/** Removes undefined fields from objects that are stored, merged or compared. */

/** A copy without undefined fields. */
export function withoutUndefined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const set = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set) as { [K in keyof T]?: Exclude<T[K], undefined> }; // a subset of the keys
}
